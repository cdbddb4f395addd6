package air

// Verify checks.
func Verify(m *Module) error { return nil }
