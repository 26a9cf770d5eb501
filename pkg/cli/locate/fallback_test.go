package locate

import (
	"testing"

	"github.com/spf13/cobra"
)

func TestNamed(t *testing.T) {
	for _, tc := range []struct {
		name, command string
		args          []string
		flag          string
		want          string
		ok            bool
	}{
		{"type and name", "wait", []string{"pod", "x"}, "", "pod/x", true},
		{"type/name", "wait", []string{"pod/x"}, "", "pod/x", true},
		{"labels are no names", "label", []string{"pods", "x", "a=b", "c-"}, "", "pods/x", true},
		{"a type only", "delete", []string{"pods"}, "", "", false},
		{"a type only, of which all objects are described", "describe", []string{"pods"}, "", "pods/", true},
		{"several types", "delete", []string{"pods,services", "x"}, "", "", false},
		{"a selector", "delete", []string{"pods", "x"}, "selector", "", false},
		{"a file", "delete", nil, "filename", "", false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			cmd := &cobra.Command{Use: tc.command}
			cmd.Flags().String("selector", "", "")
			cmd.Flags().String("filename", "", "")
			if tc.flag != "" {
				if err := cmd.Flags().Set(tc.flag, "x"); err != nil {
					t.Fatal(err)
				}
			}
			got, ok := named(cmd, tc.args)
			if ok != tc.ok || ok && got.Arg != tc.want {
				t.Errorf("got %q, %v; want %q, %v", got.Arg, ok, tc.want, tc.ok)
			}
		})
	}
}
