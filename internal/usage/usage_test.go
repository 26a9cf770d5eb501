package usage

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestResources_LeavesOutWhatIsNoUsage(t *testing.T) {
	var got Resources
	const text = `{"cpu":"100m","memory":1048576,"a":"NaN","b":"-1","c":"1e-300000000","d":null,"e":{"x":1},"f":"","g":"0"}`
	if err := json.Unmarshal([]byte(text), &got); err != nil {
		t.Fatal(err)
	}
	values := map[string]string{}
	for name, q := range got {
		values[string(name)] = q.String()
	}
	if diff := cmp.Diff(map[string]string{"cpu": "100m", "memory": "1048576", "g": "0"}, values); diff != "" {
		t.Error(diff)
	}
}
