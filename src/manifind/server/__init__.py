"""The search page and its API: a collection served to a browser and to programs."""
