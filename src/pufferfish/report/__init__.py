"""Pictures of releases."""
