"""What people see of a release: text, values, pictures, a page."""
