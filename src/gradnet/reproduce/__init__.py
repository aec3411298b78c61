"""The paper's tables, figures and claims: declared as data, run cell by cell, rendered beside what the paper prints."""
