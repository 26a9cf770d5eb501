//go:build helm

package render

import (
	"fmt"
	"maps"
	"strings"
	"testing"
)

// Each workload has a NetworkPolicy, whose ports are those of its containers and Services.
func TestNetworkPolicies_NameThePortsOfTheirPods(t *testing.T) {
	for name, values := range map[string]string{
		"host": allValuesOfOne, "agent": `{installMode: agent, agent: {clusterName: m1, kubeconfig: {caCrt: $CRT, crt: $CRT, key: $KEY, server: "https://x"}}}`,
		"component": "installMode: component" + allValuesOfOne, "external etcd": bases()[2], "compact": allValuesOfOne + "compact: true\n",
	} {
		objects, err := tryRender("try", values, false, "networkPolicy.enabled=true", "networkPolicy.metricsFrom[0].podSelector.matchLabels.a=b")
		if err != nil {
			t.Fatal(err)
		}
		left := map[string]bool{}
		for key, o := range objects {
			if strings.HasPrefix(key, "NetworkPolicy/") {
				left[o["spec"].(object)["podSelector"].(object)["matchLabels"].(object)["app"].(string)] = true
			}
		}
		apps := maps.Clone(left)
		for key, o := range objects {
			if kind, _, _ := strings.Cut(key, "/"); kind != "Deployment" && kind != "StatefulSet" {
				continue
			}
			template := o["spec"].(object)["template"].(object)
			app := template["metadata"].(object)["labels"].(object)["app"].(string)
			policy := objects["NetworkPolicy/"+app]
			if policy == nil {
				t.Errorf("%s: %s has no policy", name, key)
				continue
			}
			delete(left, app)
			ports := map[string]bool{}
			for _, port := range template["spec"].(object)["containers"].([]any)[0].(object)["ports"].([]any) {
				ports[fmt.Sprint(port.(object)["containerPort"])] = true
			}
			ingress, _ := policy["spec"].(object)["ingress"].([]any)
			for _, rule := range ingress {
				port := fmt.Sprint(rule.(object)["ports"].([]any)[0].(object)["port"])
				if !ports[port] {
					t.Errorf("%s: %s has no port %s", name, key, port)
				}
				delete(ports, port)
				from, _ := rule.(object)["from"].([]any)
				for _, peer := range from {
					labels, _ := peer.(object)["podSelector"].(object)["matchLabels"].(object)
					if app, _ := labels["app"].(string); app != "" && !apps[app] && app != "try-search" {
						t.Errorf("%s: %s accepts connections of %s, which there is not", name, key, app)
					}
				}
			}
			delete(ports, "10357") // the health of the controllers, which kubelet reads
			if len(ports) > 0 {
				t.Errorf("%s: nobody may connect to %v of %s", name, ports, key)
			}
		}
		if len(left) > 0 || len(apps) == 0 {
			t.Errorf("%s: policies for pods that are not there: %v", name, left)
		}
	}
}
