"""What must be remembered between two API writes."""
