package addons

import (
	"testing"

	"github.com/karmada-toolkit/karmada/pkg/init/addons"
)

func TestTable(t *testing.T) {
	got := table([]addons.Addon{{Name: "karmada-descheduler", Status: addons.Disabled}, {Name: "karmada-search", Status: addons.Enabled}})
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
