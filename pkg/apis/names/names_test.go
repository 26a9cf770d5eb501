package names

import "testing"

func TestWork_Vectors(t *testing.T) {
	for _, tc := range []struct{ kind, name, namespace, want string }{
		{"Deployment", "nginx", "default", "nginx-687f7fb96f"},
		{"ClusterRole", "system:foo:Bar", "", "system.foo.bar-5964d7bd5d"},
		{"Namespace", "test", "", "test-69fd499b4c"},
		{"ClusterRole", "karmada-impersonator", "", "karmada-impersonator-7cbb6bd5c9"},
		{"ClusterRoleBinding", "karmada-impersonator", "", "karmada-impersonator-84f8c8f8c6"},
	} {
		if got := Work(tc.kind, tc.name, tc.namespace); got != tc.want {
			t.Errorf("Work(%q, %q, %q) = %q, want %q", tc.kind, tc.name, tc.namespace, got, tc.want)
		}
	}
}

func TestBinding_ColonsBecomeDots(t *testing.T) {
	if got := Binding("Role", "system:controller:tom"); got != "system.controller.tom-role" {
		t.Errorf("got %q", got)
	}
}

func TestPolicy_Vector(t *testing.T) {
	if got := Policy("apps/v1, Kind=Deployment", "default", "nginx"); got != "nginx-6d7f8d5f5b" {
		t.Errorf("got %q", got)
	}
}

func TestDependedByKey_Vector(t *testing.T) {
	if got := DependedByKey("default", "nginx-deployment"); got != "5bdc5c4dcf" {
		t.Errorf("got %q", got)
	}
}

func TestClusterOfExecutionNamespace(t *testing.T) {
	if got, err := ClusterOfExecutionNamespace(ExecutionNamespace("m1")); err != nil || got != "m1" {
		t.Errorf("got %q, %v", got, err)
	}
	for _, bad := range []string{"default", "karmada-es-", ""} {
		if _, err := ClusterOfExecutionNamespace(bad); err == nil {
			t.Errorf("%q is taken for an execution namespace", bad)
		}
	}
}
