package addons

import (
	"testing"

	installer "github.com/karmada-toolkit/karmada/pkg/init"
)

func TestTable(t *testing.T) {
	got := table([]installer.Addon{{Name: "karmada-descheduler", Status: installer.AddonDisabled}, {Name: "karmada-search", Status: installer.AddonEnabled}})
	want := "" +
		"+---------------------+----------+\n" +
		"| ADDON NAME          | STATUS   |\n" +
		"|---------------------|----------|\n" +
		"| karmada-descheduler | disabled |\n" +
		"| karmada-search      | enabled  |\n" +
		"+---------------------+----------+\n"
	if got != want {
		t.Errorf("got:\n%s", got)
	}
}
