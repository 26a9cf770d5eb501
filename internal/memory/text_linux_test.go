package memory

import "testing"

func TestProgramMapping_OnlyWhatCannotBeWritten(t *testing.T) {
	const program = "/usr/bin/karmada"
	tests := []struct {
		name, line string
		want       bool
	}{
		{"code", "00400000-01000000 r-xp 00000000 08:01 1 /usr/bin/karmada", true},
		{"constants", "01000000-02000000 r--p 00c00000 08:01 1 /usr/bin/karmada", true},
		{"variables", "02000000-02100000 rw-p 01c00000 08:01 1 /usr/bin/karmada", false},
		{"a library", "7f000000-7f100000 r-xp 00000000 08:01 2 /lib/libc.so.6", false},
		{"memory without a file", "c000000000-c000400000 rw-p 00000000 00:00 0", false},
		{"nonsense", "x", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if _, _, got := programMapping(tt.line, program); got != tt.want {
				t.Errorf("%q: %t", tt.line, got)
			}
		})
	}
}

func TestDropProgram_TheProgramGoesOn(t *testing.T) {
	if err := dropProgram(); err != nil {
		t.Fatal(err)
	}
}
