"""The controller that moves training jobs down their ladder, and back up."""
