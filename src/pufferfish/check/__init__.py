"""Does a model describe public data? Numbers, a picture and a verdict."""
