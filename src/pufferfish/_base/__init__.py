"""What everything stands on: checks of what users give, frozen values, words and numbers for people, files, views."""
