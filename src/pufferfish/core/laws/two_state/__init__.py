"""Laws of counts over every two-state chain between bounds."""
