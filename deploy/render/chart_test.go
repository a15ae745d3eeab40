// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/pod-security-admission/api"
	podsecurity "k8s.io/pod-security-admission/policy"
)

func TestValuesThatAreRefused(t *testing.T) {
	base := "policy: {mode: approve-only, signers: [{name: kubernetes.io/kubelet-serving}]}\n"
	for name, tc := range map[string]struct{ values, err string }{
		"a value that is not known":      {base + "replica: 2", "additional properties 'replica' not allowed"},
		"a policy field not known":       {"policy: {mode: observe, signers: [{name: a.b/c}], polcy: {}}", "additional properties 'polcy' not allowed"},
		"a mode not known":               {"policy: {mode: approve}", "at '/policy/mode'"},
		"a signer without a domain":      {"policy: {signers: [{name: kubelet-serving}]}", "at '/policy/signers/0/name'"},
		"every signer of a domain":       {"policy: {signers: [{name: kubernetes.io/*}]}", "at '/policy/signers/0/name'"},
		"no signer":                      {"policy: {signers: []}", "at '/policy/signers'"},
		"two sources in one":             {"policy: {inventory: {sources: [{dns: {}, nodeStatus: {}}]}}", "at '/policy/inventory/sources/0'"},
		"the chart's own fields":         {"policy: {leaderElection: {enabled: false}}", "additional properties 'leaderElection' not allowed"},
		"a duration that is none":        {"policy: {signers: [{name: a.b/c, duration: 1w}]}", "at '/policy/signers/0/duration'"},
		"signing without a key":          {"policy: {mode: sign-only}", "policy.keys must name a key"},
		"approving and signing, no key":  {"policy: {mode: approve-and-sign}", "policy.keys must name a key"},
		"a key that nothing needs":       {"policy: {keys: [{name: a, file: {certificate: /a, key: /b}}]}", "signs nothing, but policy.keys names a key"},
		"a mount of nothing":             {"mounts: [{name: a, path: /a}]", "the mount a must be one of"},
		"a mount of two":                 {"mounts: [{name: a, path: /a, secret: b, configMap: c}]", "the mount a must be one of"},
		"a mount that hides the policy":  {"mounts: [{name: policy, path: /a, secret: b}]", "at '/mounts/0/name'"},
		"the register in kube-system":    {"register: {namespace: kube-system}", "others trust"},
		"a text that would be YAML":      {"mounts: [{name: a, path: \"/a, readOnly: false\", secret: b}]", "at '/mounts/0/path'"},
		"a person as a reader":           {"metrics: {readers: [{user: me}]}", "at '/metrics/readers/0'"},
		"bootstrap groups of no tokens":  {"policy: {policy: {bootstrap: {bindings: [{group: system:masters}]}}}", "bindings/0/group"},
		"a digest that is none":          {"image: {digest: latest}", "at '/image/digest'"},
		"nodes that there are not":       {"nodes: workers", "at '/nodes'"},
		"a port that there is not":       {"health: {port: 0}", "at '/health/port'"},
		"pruning everything but nothing": {"policy: {pruning: {keep: -2}}", "at '/policy/pruning/keep'"},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := loadChart(deploy)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := render(c, values(t, tc.values)); err == nil || !strings.Contains(err.Error(), tc.err) {
				t.Errorf("error %v, want %q", err, tc.err)
			}
		})
	}
}

func TestPolicyIsPassedOn(t *testing.T) {
	all := objects(t, `
policy:
  mode: approve-and-sign
  workers: 8
  signers:
  - {name: kubernetes.io/kubelet-serving, duration: 24h, key: a}
  keys: [{name: a, pkcs11: {module: /m.so, token: t, keyLabel: k, pinFile: /pin, certificate: /c}}]
  trust: {client: [/old.crt], publish: {namespace: kube-system}}
  policy:
    maxExpiration: 48h
    bootstrap: {unboundTokens: allow, bindings: [{group: system:bootstrappers:a, nodeNames: ["w-*"]}]}
  inventory:
    combine: all
    sources: [{static: {configMap: {name: m}}}, {ec2: {region: eu-central-2, filters: {"tag:cluster": [a, b]}}}]
  pruning: {keep: 1}
metrics: {port: 9000}
health: {port: 9001}
`)
	want := values(t, `
apiVersion: certificates.muster.dev/v1alpha1
kind: CertificateControllerConfiguration
mode: approve-and-sign
workers: 8
signers:
- {name: kubernetes.io/kubelet-serving, duration: 24h, key: a}
keys: [{name: a, pkcs11: {module: /m.so, token: t, keyLabel: k, pinFile: /pin, certificate: /c}}]
trust: {client: [/old.crt], publish: {namespace: kube-system}}
policy:
  maxExpiration: 48h
  bootstrap: {unboundTokens: allow, bindings: [{group: system:bootstrappers:a, nodeNames: ["w-*"]}]}
inventory:
  combine: all
  sources: [{static: {configMap: {name: m, namespace: muster-system}}}, {ec2: {region: eu-central-2, filters: {"tag:cluster": [a, b]}}}]
pruning: {keep: 1}
register: {namespace: muster-system}
leaderElection: {enabled: true, namespace: muster-system, name: muster-certificate-controller}
health: {bindAddress: "0.0.0.0:9001"}
metrics: {bindAddress: "0.0.0.0:9000"}
`)
	if diff := cmp.Diff(want, policyFile(t, all)); diff != "" {
		t.Errorf("policy (-want +got):\n%s", diff)
	}
}

// Pods meet the standard that the namespace of their manifest holds them to.
func TestPodSecurity(t *testing.T) {
	files, err := manifests(deploy)
	if err != nil {
		t.Fatal(err)
	}
	evaluator, err := podsecurity.NewEvaluator(podsecurity.DefaultChecks(), nil)
	if err != nil {
		t.Fatal(err)
	}
	standards := map[string]string{}
	for name, content := range files {
		var namespaced *corev1.Namespace
		var pod corev1.PodTemplateSpec
		replicas := int32(0)
		for _, document := range split(content) {
			switch o := decode(t, document).(type) {
			case *corev1.Namespace:
				namespaced = o
			case *appsv1.Deployment:
				pod, replicas = o.Spec.Template, *o.Spec.Replicas
			case *appsv1.DaemonSet:
				pod = o.Spec.Template
			}
		}
		level := namespaced.Labels["pod-security.kubernetes.io/enforce"]
		standards[strings.TrimPrefix(name, "manifests/")] = level
		for _, r := range evaluator.EvaluatePod(api.LevelVersion{Level: api.Level(level), Version: api.LatestVersion()}, &pod.ObjectMeta, &pod.Spec) {
			if !r.Allowed {
				t.Errorf("%s is refused in its namespace: %s: %s", name, r.ForbiddenReason, r.ForbiddenDetail)
			}
		}
		if strings.HasPrefix(name, "manifests/authenticator") {
			continue // TestAuthenticatorPods
		}
		container := pod.Spec.Containers[0]
		if s := container.SecurityContext; !*s.ReadOnlyRootFilesystem || *s.AllowPrivilegeEscalation || s.Capabilities.Drop[0] != "ALL" || s.Capabilities.Add != nil {
			t.Errorf("%s: the container's security context is %v", name, s)
		}
		for _, m := range container.VolumeMounts {
			if ownCertificate := m.Name == "tls" && name == "manifests/pod-identity-webhook.yaml"; m.ReadOnly == ownCertificate { // that one is in memory
				t.Errorf("%s: %s may be written", name, m.MountPath)
			}
		}
		if pod.Spec.PriorityClassName != "system-cluster-critical" || replicas != 2 {
			t.Errorf("%s: priority %q, %d replicas", name, pod.Spec.PriorityClassName, replicas)
		}
	}
	want := map[string]string{
		"observe.yaml": "restricted", "approve-only.yaml": "restricted", "approve-and-sign.yaml": "privileged", "authenticator.yaml": "privileged", "authenticator-access-policies.yaml": "privileged",
		"pod-identity-webhook.yaml": "restricted", "pod-identity-webhook-cert-manager.yaml": "restricted",
	}
	if diff := cmp.Diff(want, standards); diff != "" {
		t.Errorf("standards (-want +got):\n%s", diff)
	}
}

// A profile that leaves the signing to others sees nothing of the host, and no key.
func TestWithoutAKeyNothingIsMounted(t *testing.T) {
	for _, v := range []string{"", "policy: {mode: observe}"} {
		pod := only[*appsv1.Deployment](t, objects(t, v)).Spec.Template.Spec
		for _, volume := range pod.Volumes {
			if volume.ConfigMap == nil {
				t.Errorf("volume %s is no ConfigMap", volume.Name)
			}
		}
		if pod.SecurityContext.RunAsUser == nil || *pod.SecurityContext.RunAsUser != 65532 || !*pod.SecurityContext.RunAsNonRoot {
			t.Errorf("it runs as %v", pod.SecurityContext)
		}
	}
}

func TestPlacement(t *testing.T) {
	const label = "node-role.kubernetes.io/control-plane"
	for _, tc := range []struct {
		nodes             string
		required, prefers bool
		tolerates         bool
	}{
		{nodes: "control-plane", required: true, tolerates: true},
		{nodes: "prefer-control-plane", prefers: true, tolerates: true},
		{nodes: "any"},
	} {
		pod := only[*appsv1.Deployment](t, objects(t, "nodes: "+tc.nodes)).Spec.Template.Spec
		_, required := pod.NodeSelector[label]
		tolerates := false
		for _, toleration := range pod.Tolerations {
			tolerates = tolerates || toleration.Key == label
		}
		if required != tc.required || tolerates != tc.tolerates || (pod.Affinity != nil) != tc.prefers {
			t.Errorf("%s: required %t, tolerated %t, affinity %v", tc.nodes, required, tolerates, pod.Affinity)
		}
	}
}

func TestHostNetwork(t *testing.T) {
	all := objects(t, "hostNetwork: true")
	pod := only[*appsv1.Deployment](t, all).Spec.Template.Spec
	if !pod.HostNetwork || pod.DNSPolicy != corev1.DNSDefault || pod.Containers[0].LivenessProbe.HTTPGet.Host != "127.0.0.1" {
		t.Errorf("host network %t, DNS %s, probe at %q", pod.HostNetwork, pod.DNSPolicy, pod.Containers[0].LivenessProbe.HTTPGet.Host)
	}
	health, _ := policyFile(t, all)["health"].(map[string]any)
	if health["bindAddress"] != "127.0.0.1:8081" {
		t.Errorf("health is at %v, which others on the host's network reach", health)
	}
}

func TestOneReplicaHasNoBudget(t *testing.T) {
	if n := len(every[*policyv1.PodDisruptionBudget](objects(t, "replicas: 1"))); n != 0 {
		t.Error("a budget for one replica that allows none to go stops every drain")
	}
	only[*policyv1.PodDisruptionBudget](t, objects(t, ""))
}

func TestFlowSchemas(t *testing.T) {
	for _, tc := range []struct {
		values string
		want   map[string]string
	}{
		{"", map[string]string{release: "workload-high"}},
		{"flowSchemas: {controller: false}", map[string]string{}},
		{"flowSchemas: {bootstrappers: true}", map[string]string{release: "workload-high", release + "-bootstrappers": "system"}},
	} {
		got := map[string]string{}
		for _, f := range every[*flowcontrolv1.FlowSchema](objects(t, tc.values)) {
			got[f.Name] = f.Spec.PriorityLevelConfiguration.Name
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", tc.values, diff)
		}
	}
}

func TestMonitoring(t *testing.T) {
	all := objects(t, "metrics: {serviceMonitor: {enabled: true, labels: {team: a}}, prometheusRule: {enabled: true}, dashboard: {enabled: true}}")
	monitor := only[*monitoringv1.ServiceMonitor](t, all)
	if monitor.Labels["team"] != "a" || len(monitor.Spec.Endpoints) != 1 || *monitor.Spec.Endpoints[0].Scheme != "https" {
		t.Errorf("ServiceMonitor %v", monitor)
	}
	service := only[*corev1.Service](t, all)
	if service.Spec.Ports[0].Name != monitor.Spec.Endpoints[0].Port {
		t.Errorf("the Service's port is %q, Prometheus asks for %q", service.Spec.Ports[0].Name, monitor.Spec.Endpoints[0].Port)
	}
	described := map[string]string{}
	for _, group := range only[*monitoringv1.PrometheusRule](t, all).Spec.Groups {
		for _, r := range group.Rules {
			described[r.Alert] = r.Annotations["description"]
		}
	}
	for _, r := range controller().rules(t) {
		if described[r.Alert] != r.Annotations["description"] {
			t.Errorf("%s in the PrometheusRule says %q, in the file %q", r.Alert, described[r.Alert], r.Annotations["description"])
		}
	}
	dashboards := 0
	for _, cm := range every[*corev1.ConfigMap](all) {
		if cm.Labels["grafana_dashboard"] == "1" && strings.HasPrefix(cm.Data["certificate-controller.json"], "{") {
			dashboards++
		}
	}
	if dashboards != 1 {
		t.Errorf("%d dashboards, want one", dashboards)
	}
	if n := len(every[*monitoringv1.ServiceMonitor](objects(t, ""))); n != 0 {
		t.Error("a cluster without the Prometheus operator could not install the chart as it is")
	}
}

func TestImage(t *testing.T) {
	digest := "sha256:" + strings.Repeat("a", 64)
	for v, want := range map[string]string{
		"": "muster.dev/muster:v0.2.0",
		"image: {repository: r.example/m, tag: t}": "r.example/m:t",
		"image: {digest: \"" + digest + "\"}":      "muster.dev/muster@" + digest,
	} {
		if got := only[*appsv1.Deployment](t, objects(t, v)).Spec.Template.Spec.Containers[0].Image; got != want {
			t.Errorf("image %s, want %s", got, want)
		}
	}
}
