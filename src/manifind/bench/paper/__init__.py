"""The paper's tables, figures and claims: declared as data, run cell by cell, rendered beside the printed values."""
