//go:build !linux

package memory

// dropProgram does nothing: the system releases the pages of the program itself.
func dropProgram() error { return nil }
