package phases

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/karmada-toolkit/karmada/internal/pki"
	"github.com/karmada-toolkit/karmada/internal/version"
	"github.com/karmada-toolkit/karmada/pkg/init/components"
	"github.com/karmada-toolkit/karmada/pkg/init/config"
)

// writeExamples writes manifests to start from, unless they are there.
func writeExamples(dir, namespace string) error {
	release := version.Get().Release()
	for name, text := range map[string]string{"karmada-agent.yaml": agentExample, "karmada-scheduler-estimator.yaml": estimatorExample} {
		path := filepath.Join(dir, name)
		if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
			continue
		}
		text = strings.NewReplacer(
			"NAMESPACE", namespace,
			"AGENT_IMAGE", config.DefaultImage("karmada-agent", release),
			"ESTIMATOR_IMAGE", config.DefaultImage(components.Estimator, release),
		).Replace(text)
		if err := pki.WriteFile(path, []byte(text), 0o640); err != nil {
			return fmt.Errorf("writing %s: %w", path, err)
		}
	}
	return nil
}

const agentExample = `# An agent in a member cluster, for Pull mode. Replace {member_cluster_name} and
# {member_cluster_api_endpoint}, and put the kubeconfig of the control plane into the
# Secret karmada-kubeconfig. "register" does all of this.
apiVersion: v1
kind: Namespace
metadata:
  name: NAMESPACE
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: karmada-agent
rules:
- apiGroups: ["*"]
  resources: ["*"]
  verbs: ["*"]
- nonResourceURLs: ["*"]
  verbs: ["get"]
---
apiVersion: v1
kind: ServiceAccount
metadata:
  name: karmada-agent-sa
  namespace: NAMESPACE
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata:
  name: karmada-agent
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: ClusterRole
  name: karmada-agent
subjects:
- kind: ServiceAccount
  name: karmada-agent-sa
  namespace: NAMESPACE
---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: karmada-agent
  namespace: NAMESPACE
  labels:
    app: karmada-agent
spec:
  replicas: 1
  selector:
    matchLabels:
      app: karmada-agent
  template:
    metadata:
      labels:
        app: karmada-agent
    spec:
      serviceAccountName: karmada-agent-sa
      securityContext:
        runAsNonRoot: true
        runAsUser: 65532
        runAsGroup: 65532
        fsGroup: 65532
        seccompProfile:
          type: RuntimeDefault
      tolerations:
      - key: node-role.kubernetes.io/master
        operator: Exists
      containers:
      - name: karmada-agent
        image: AGENT_IMAGE
        securityContext:
          allowPrivilegeEscalation: false
          readOnlyRootFilesystem: true
          capabilities:
            drop: ["ALL"]
            add: ["NET_BIND_SERVICE"]
        command:
        - /bin/karmada-agent
        - --karmada-kubeconfig=/etc/kubeconfig/karmada-kubeconfig
        - --karmada-context=karmada-apiserver
        - --cluster-name={member_cluster_name}
        - --cluster-api-endpoint={member_cluster_api_endpoint}
        - --cluster-status-update-frequency=10s
        - --v=2
        livenessProbe:
          httpGet:
            path: /healthz
            port: 10357
            scheme: HTTP
          initialDelaySeconds: 15
          periodSeconds: 15
          timeoutSeconds: 5
        volumeMounts:
        - name: kubeconfig
          mountPath: /etc/kubeconfig
          readOnly: true
      volumes:
      - name: kubeconfig
        secret:
          secretName: karmada-kubeconfig
`

const estimatorExample = `# An estimator for one member, in the host cluster. Replace {{member_cluster_name}}, and
# put the kubeconfig of the member into the Secret {{member_cluster_name}}-kubeconfig.
apiVersion: apps/v1
kind: Deployment
metadata:
  name: karmada-scheduler-estimator-{{member_cluster_name}}
  namespace: NAMESPACE
  labels:
    cluster: {{member_cluster_name}}
spec:
  replicas: 1
  selector:
    matchLabels:
      app: karmada-scheduler-estimator-{{member_cluster_name}}
  template:
    metadata:
      labels:
        app: karmada-scheduler-estimator-{{member_cluster_name}}
        cluster: {{member_cluster_name}}
    spec:
      automountServiceAccountToken: false
      tolerations:
      - key: node-role.kubernetes.io/master
        operator: Exists
      containers:
      - name: karmada-scheduler-estimator
        image: ESTIMATOR_IMAGE
        command:
        - /bin/karmada-scheduler-estimator
        - --kubeconfig=/etc/{{member_cluster_name}}-kubeconfig
        - --cluster-name={{member_cluster_name}}
        - --grpc-auth-cert-file=/etc/karmada/pki/karmada.crt
        - --grpc-auth-key-file=/etc/karmada/pki/karmada.key
        - --grpc-client-ca-file=/etc/karmada/pki/ca.crt
        livenessProbe:
          httpGet:
            path: /healthz
            port: 10351
            scheme: HTTP
          initialDelaySeconds: 15
          periodSeconds: 15
          timeoutSeconds: 5
        volumeMounts:
        - name: karmada-cert
          mountPath: /etc/karmada/pki
          readOnly: true
        - name: member-kubeconfig
          subPath: {{member_cluster_name}}-kubeconfig
          mountPath: /etc/{{member_cluster_name}}-kubeconfig
      volumes:
      - name: karmada-cert
        secret:
          secretName: karmada-cert
      - name: member-kubeconfig
        secret:
          secretName: {{member_cluster_name}}-kubeconfig
---
apiVersion: v1
kind: Service
metadata:
  name: karmada-scheduler-estimator-{{member_cluster_name}}
  namespace: NAMESPACE
  labels:
    cluster: {{member_cluster_name}}
spec:
  selector:
    app: karmada-scheduler-estimator-{{member_cluster_name}}
  ports:
  - protocol: TCP
    port: 10352
    targetPort: 10352
  type: ClusterIP
`
