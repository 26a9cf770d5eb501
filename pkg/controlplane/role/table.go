package role

// Table returns the roles.
func Table() []Role { return nil }
