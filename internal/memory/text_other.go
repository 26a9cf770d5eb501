//go:build !linux

package memory

// DropProgram does nothing: the system releases the pages of the program itself.
func DropProgram() error { return nil }
