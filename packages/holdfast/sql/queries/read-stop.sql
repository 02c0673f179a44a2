SELECT stopped_because FROM settings
