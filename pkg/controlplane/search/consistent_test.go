package search

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	genericrequest "k8s.io/apiserver/pkg/endpoints/request"

	"github.com/karmada-toolkit/karmada/internal/build"
	"github.com/karmada-toolkit/karmada/internal/quantity"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/search/cache"
	domain "github.com/karmada-toolkit/karmada/pkg/domain/search"
)

// What a member answers at once is checked as what is cached: identity, and quantities that would be decoded for minutes.
func TestFetch_Read(t *testing.T) {
	f := &fetch{info: &genericrequest.RequestInfo{Verb: "list", Namespace: "team", Resource: "pods", APIVersion: "v1"}}
	source := cache.Source{Cluster: "m1", Kind: schema.GroupVersionKind{Version: "v1", Kind: "Pod"}, Namespaces: domain.Namespaces{All: true}}
	pod := func(namespace, cpu string) string {
		return fmt.Sprintf(`{"metadata":{"namespace":%q,"name":"a"},"spec":{"containers":[{"name":"1e300000000","resources":{"requests":{"cpu":%s}}}]}}`, namespace, cpu)
	}
	build.Bounded(t, time.Minute, 64<<20, func() {
		for item, want := range map[string]error{
			pod("team", `"100m"`):                          nil,
			pod("team", `"1e-300000000"`):                  quantity.ErrRange,
			pod("team", `"`+strings.Repeat("1", 5000)+`"`): quantity.ErrRange,
		} {
			objects, page, err := f.read([]byte(`{"metadata":{"resourceVersion":"7"},"items":[`+item+`]}`), source)
			if !errors.Is(err, want) || err == nil && (len(objects) != 1 || page.ResourceVersion != "7") {
				t.Errorf("%.80s: %v %v", item, objects, err)
			}
		}
		if _, _, err := f.read([]byte(`{"items":[`+pod("other", "1")+`]}`), source); err == nil {
			t.Error("an object of another namespace is accepted")
		}
	})
}
