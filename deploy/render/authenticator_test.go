// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

const clusterNamed = "config: {clusterID: blue}\n"

func authenticatorObjects(t *testing.T, text string) []runtime.Object {
	t.Helper()
	return objectsOf(t, authenticatorChart, authenticatorRelease, text)
}

func authenticatorFile(t *testing.T, all []runtime.Object) map[string]any {
	t.Helper()
	for _, cm := range every[*corev1.ConfigMap](all) {
		if text, ok := cm.Data["authenticator.yaml"]; ok {
			return values(t, text)
		}
	}
	t.Fatal("no ConfigMap holds authenticator.yaml")
	return nil
}

func TestAuthenticatorValuesThatAreRefused(t *testing.T) {
	for name, tc := range map[string]struct{ values, err string }{
		"no cluster":                      {"", "at '/config'"},
		"a cluster with a space in it":    {"config: {clusterID: a b}", "at '/config/clusterID'"},
		"a value that is not known":       {clusterNamed + "replicas: 2", "additional properties 'replicas' not allowed"},
		"a field not known":               {"config: {clusterID: a, mappings: {}}", "additional properties 'mappings' not allowed"},
		"the chart's own fields":          {"config: {clusterID: a, server: {bindAddress: 0.0.0.0:1}}", "additional properties 'bindAddress' not allowed"},
		"one of many that is alone":       {"config: {clusterID: a, accessPolicies: {alone: true}}", "additional properties 'alone' not allowed"},
		"the namespace of the mode":       {"config: {clusterID: a, mapping: {namespace: kube-system}}", "additional properties 'namespace' not allowed"},
		"a backend not known":             {"config: {clusterID: a, backend: aws}", "at '/config/backend'"},
		"a mode not known":                {"config: {clusterID: a, mapping: {mode: CRD}}", "at '/config/mapping/mode'"},
		"an account that is a number":     {"config: {clusterID: a, accountID: 111122223333}", "at '/config/accountID'"},
		"a duration that is none":         {"config: {clusterID: a, cache: {ttl: 60}}", "at '/config/cache/ttl'"},
		"a profile without its role":      {"config: {clusterID: a, ec2: {instanceProfiles: [{arn: a}]}}", "at '/config/ec2/instanceProfiles/0'"},
		"an address without a port":       {clusterNamed + "address: 127.0.0.1", "at '/address'"},
		"a port that there is not":        {clusterNamed + "healthPort: 0", "at '/healthPort'"},
		"a directory that would be YAML":  {clusterNamed + "stateDir: \"/a, readOnly: false\"", "at '/stateDir'"},
		"a mount of nothing":              {clusterNamed + "mounts: [{name: a, path: /a}]", "at '/mounts/0'"},
		"a mount of two":                  {clusterNamed + "mounts: [{name: a, path: /a, secret: b, configMap: c}]", "at '/mounts/0'"},
		"a mount that hides the keys":     {clusterNamed + "mounts: [{name: state, path: /a, secret: b}]", "at '/mounts/0/name'"},
		"a digest that is none":           {clusterNamed + "image: {digest: latest}", "at '/image/digest'"},
		"a service account that is none":  {clusterNamed + "serviceAccount: {name: A}", "at '/serviceAccount/name'"},
		"an annotation that is no string": {clusterNamed + "podAnnotations: {a: 1}", "at '/podAnnotations/a'"},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := loadChartIn(deploy, authenticatorChart)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := renderAs(c, values(t, tc.values), authenticatorRelease); err == nil || !strings.Contains(err.Error(), tc.err) {
				t.Errorf("error %v, want %q", err, tc.err)
			}
		})
	}
}

func TestAuthenticatorFileIsPassedOn(t *testing.T) {
	got := authenticatorFile(t, authenticatorObjects(t, `
config:
  clusterID: blue
  accountID: "111122223333"
  server: {audiences: [a]}
  sts: {endpoints: {sts.amazonaws.com: "https://10.0.0.9"}, ca: /sts/ca.pem}
  ec2: {region: eu-west-1, perSecond: 2.5}
  mapping: {mode: API, rolePatterns: true}
  limits: {wait: 1s}
  scrubbedAccounts: ["111122223333"]
stateDir: /state
address: "127.0.0.1:1234"
healthPort: 1235
metricsPort: 1236
`))
	want := values(t, `
apiVersion: authenticator.muster.dev/v1alpha1
kind: AuthenticatorConfiguration
clusterID: blue
accountID: "111122223333"
server: {audiences: [a], stateDir: /state, bindAddress: "127.0.0.1:1234", healthAddress: "127.0.0.1:1235", metricsAddress: "127.0.0.1:1236"}
sts: {endpoints: {sts.amazonaws.com: "https://10.0.0.9"}, ca: /sts/ca.pem}
ec2: {region: eu-west-1, perSecond: 2.5}
mapping: {mode: API, rolePatterns: true, namespace: muster-system}
limits: {wait: 1s}
scrubbedAccounts: ["111122223333"]
`)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("file (-want +got):\n%s", diff)
	}
}

// The authenticator gets exactly what it uses: to list and watch mappings, write their status, tell Events of them,
// record the mode, review clients that read its metrics, and agree with others on who writes.
func TestAuthenticatorPermissions(t *testing.T) {
	reads := []string{
		"cluster: list,watch access.muster.dev/accessentries",
		"cluster: patch access.muster.dev/accessentries/status",
		"cluster: list,watch iamauthenticator.k8s.aws/iamidentitymappings",
		"cluster: patch iamauthenticator.k8s.aws/iamidentitymappings/status",
		"cluster: create authentication.k8s.io/tokenreviews",
		"cluster: create authorization.k8s.io/subjectaccessreviews",
		"kube-system: list,watch configmaps aws-auth",
		"kube-system: create,patch events",
		"default: create,patch events",
		"muster-system: create,patch events",
		"muster-system: create configmaps",
		"muster-system: get,update configmaps muster-authenticator",
		"muster-system: create coordination.k8s.io/leases",
		"muster-system: get,update coordination.k8s.io/leases muster-access-policies",
	}
	for name, tc := range map[string]struct {
		values string
		want   []string
	}{
		"mappings of the cluster": {clusterNamed, reads},
		"a file alone":            {"config: {clusterID: blue, mapping: {fileOnly: true, file: /m/mappings.yaml}}", nil},
		"access policies": {"config: {clusterID: blue, accessPolicies: {enabled: true}}", append(reads,
			"cluster: list,watch namespaces",
			"cluster: list,watch,create,patch,delete rbac.authorization.k8s.io/clusterrolebindings",
			"cluster: list,watch,create,patch,delete rbac.authorization.k8s.io/rolebindings",
			"cluster: bind rbac.authorization.k8s.io/clusterroles admin,cluster-admin,edit,muster:access-policy:AmazonEKSAdminViewPolicy,view",
		)},
	} {
		t.Run(name, func(t *testing.T) {
			want := map[string]bool{}
			for _, line := range tc.want {
				for _, one := range single(line) {
					want[one] = true
				}
			}
			all := authenticatorObjects(t, tc.values)
			if diff := cmp.Diff(want, grantedTo(t, all, authenticatorRelease)); diff != "" {
				t.Errorf("permissions (-needed +granted):\n%s", diff)
			}
			server, _ := authenticatorFile(t, all)["server"].(map[string]any)
			if _, served := server["metricsAddress"]; served != (tc.want != nil) { // who may read them is the cluster's to say
				t.Errorf("metrics are served: %t", served)
			}
			pod := only[*appsv1.DaemonSet](t, all).Spec.Template.Spec
			if only[*corev1.ServiceAccount](t, all).AutomountServiceAccountToken == nil || *pod.AutomountServiceAccountToken != (tc.want != nil) {
				t.Errorf("a token of the service account in the pod: %t", *pod.AutomountServiceAccountToken)
			}
		})
	}
}

// Objects that access policies need beside permissions are rendered only if access policies are on.
func TestAccessPoliciesAreHeldToTheirGroups(t *testing.T) {
	all := authenticatorObjects(t, clusterNamed)
	if n := len(every[*admissionregistrationv1.ValidatingAdmissionPolicy](all)); n != 0 {
		t.Errorf("%d admission policies without access policies", n)
	}
	all = authenticatorObjects(t, "config: {clusterID: blue, accessPolicies: {enabled: true}}\nserviceAccount: {name: iam}")
	policy, binding := only[*admissionregistrationv1.ValidatingAdmissionPolicy](t, all), only[*admissionregistrationv1.ValidatingAdmissionPolicyBinding](t, all)
	if binding.Spec.PolicyName != policy.Name || len(binding.Spec.ValidationActions) != 1 || binding.Spec.ValidationActions[0] != admissionregistrationv1.Deny || binding.Spec.MatchResources != nil {
		t.Errorf("the binding is %+v", binding.Spec)
	}
	if got := policy.Spec.MatchConditions[0].Expression; got != "request.userInfo.username == 'system:serviceaccount:muster-system:iam'" {
		t.Errorf("it is about %s", got)
	}
	if policy.Spec.FailurePolicy == nil || *policy.Spec.FailurePolicy != admissionregistrationv1.Fail {
		t.Error("what cannot be judged is let through")
	}
	c, err := loadChartIn(deploy, authenticatorChart)
	if err != nil {
		t.Fatal(err)
	}
	older, err := renderFor(c, values(t, "config: {clusterID: blue, accessPolicies: {enabled: true}}"), authenticatorRelease, "v1.29.3")
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range older {
		if strings.Contains(o.Content, "ValidatingAdmissionPolicy") {
			t.Error("a cluster that has no such kind could not install the chart")
		}
	}
	view := false
	for _, role := range every[*rbacv1.ClusterRole](all) {
		view = view || role.Name == "muster:access-policy:AmazonEKSAdminViewPolicy"
	}
	if !view {
		t.Error("there is no role for AmazonEKSAdminViewPolicy")
	}
}

// It runs as root, since its keys on the host are root's, and has nothing else of it.
func TestAuthenticatorPods(t *testing.T) {
	all := authenticatorObjects(t, clusterNamed+"mounts: [{name: sts, path: /sts, secret: sts}]\nstateDir: /state\nkubeconfigDir: /kubeconfig\naddress: \"127.0.0.1:1234\"")
	static, err := os.ReadFile(filepath.Join(deploy, "static", "authenticator-pod.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	pod, ok := decode(t, string(static)).(*corev1.Pod)
	if !ok {
		t.Fatal("the static pod is none")
	}
	for name, spec := range map[string]corev1.PodSpec{"chart": only[*appsv1.DaemonSet](t, all).Spec.Template.Spec, "static pod": pod.Spec} {
		if !spec.HostNetwork || spec.PriorityClassName != "system-node-critical" || *spec.SecurityContext.RunAsUser != 0 {
			t.Errorf("%s: host network %t, priority %q, user %v", name, spec.HostNetwork, spec.PriorityClassName, *spec.SecurityContext.RunAsUser)
		}
		for _, c := range append(spec.InitContainers, spec.Containers...) {
			if s := c.SecurityContext; !*s.ReadOnlyRootFilesystem || *s.AllowPrivilegeEscalation || s.Capabilities.Drop[0] != "ALL" || s.Capabilities.Add != nil {
				t.Errorf("%s: the security context of %s is %v", name, c.Name, s)
			}
			if c.Image != "muster.dev/muster:v0.2.0" || c.Command[0] != "/muster" { // the image runs the certificate controller by itself
				t.Errorf("%s: %s runs %v of %s", name, c.Name, c.Command, c.Image)
			}
		}
		for _, m := range spec.Containers[0].VolumeMounts {
			if !m.ReadOnly {
				t.Errorf("%s: %s may be written", name, m.MountPath)
			}
		}
		for _, v := range spec.Volumes {
			if v.HostPath != nil && v.Name != "state" && v.Name != "kubeconfig" && v.Name != "config" {
				t.Errorf("%s: %s is of the host", name, v.Name)
			}
		}
		if name == "chart" {
			if diff := cmp.Diff([]string{"authenticator", "init", "--dir=/state", "--kubeconfig-out=/kubeconfig/kubeconfig.yaml", "--address=127.0.0.1:1234"}, spec.InitContainers[0].Args); diff != "" {
				t.Errorf("arguments of init (-want +got):\n%s", diff)
			}
			if p := spec.Containers[0].ReadinessProbe.HTTPGet; p.Host != "127.0.0.1" || p.Port.IntValue() != 21363 {
				t.Errorf("it is asked whether it is ready at %s:%d", p.Host, p.Port.IntValue())
			}
		}
	}
}

func TestAuthenticatorIsStartedAgainWithAnotherFile(t *testing.T) {
	hash := func(text string) string {
		return only[*appsv1.DaemonSet](t, authenticatorObjects(t, text)).Spec.Template.Annotations["muster.dev/config-hash"]
	}
	if a, b := hash(clusterNamed), hash("config: {clusterID: red}"); a == "" || a == b || a != hash(clusterNamed) {
		t.Errorf("hashes %q and %q", a, b)
	}
}

func TestAuthenticatorMonitoring(t *testing.T) {
	all := authenticatorObjects(t, clusterNamed+"metrics: {prometheusRule: {enabled: true, labels: {team: a}}, dashboard: {enabled: true}}")
	rule := only[*monitoringv1.PrometheusRule](t, all)
	described := map[string]string{}
	for _, group := range rule.Spec.Groups {
		for _, r := range group.Rules {
			described[r.Alert] = r.Annotations["description"]
		}
	}
	for _, r := range authenticatorProgram().rules(t) {
		if described[r.Alert] != r.Annotations["description"] {
			t.Errorf("%s in the PrometheusRule says %q, in the file %q", r.Alert, described[r.Alert], r.Annotations["description"])
		}
	}
	dashboards := 0
	for _, cm := range every[*corev1.ConfigMap](all) {
		if cm.Labels["grafana_dashboard"] == "1" && strings.HasPrefix(cm.Data["authenticator.json"], "{") {
			dashboards++
		}
	}
	if dashboards != 1 || rule.Labels["team"] != "a" {
		t.Errorf("%d dashboards, labels of the rule %v", dashboards, rule.Labels)
	}
	if n := len(every[*monitoringv1.PrometheusRule](authenticatorObjects(t, clusterNamed))); n != 0 {
		t.Error("a cluster without the Prometheus operator could not install the chart as it is")
	}
}

// Each alert fires at the moment it should, and not before. While everything is well, no alert fires.
func TestAuthenticatorAlerts(t *testing.T) {
	at := func(v float64) func(float64) float64 { return func(float64) float64 { return v } }
	grows := func(perMinute float64) func(float64) float64 {
		return func(m float64) float64 { return perMinute * m }
	}
	const (
		theirs, ours = "aws_iam_authenticator_", "muster_authenticator_"
		here         = `{StsRegion="eu-west-1",pod="a"}`
	)
	w := func(metric string, value func(minutes float64) float64) samples {
		return samples{metric: metric, value: value}
	}
	well := []samples{
		w(ours+`mapping_entries{pod="a"}`, at(3)),
		w(theirs+"sts_connection_failures_total"+here, grows(1)),
		w(theirs+"sts_throttling_total"+here, grows(1)),
		w(ours+`questions_refused_total{key="unknown",pod="a"}`, grows(1)),
		w(theirs+`authenticate_latency_seconds_bucket{result="success",le="0.25",pod="a"}`, grows(600)),
		w(theirs+`authenticate_latency_seconds_bucket{result="success",le="+Inf",pod="a"}`, grows(600)),
		w(theirs+`authenticate_latency_seconds_bucket{result="sts_error",le="+Inf",pod="a"}`, grows(600)), // these requests wait for STS
		w(ours+`mapping_problems{source="aws-auth",pod="a"}`, at(0)),
		w(theirs+`configmap_watch_failures_total{pod="a"}`, grows(0.1)),
		w(theirs+`dynamicfile_failures_total{pod="a"}`, at(0)),
		w(ours+`decisions_total{result="success",source="aws-auth",pod="a"}`, grows(1000)),
		w(ours+`decisions_total{result="uknown_user",source="",pod="a"}`, grows(1)),
		w(ours+`log_lines_left_out_total{pod="a"}`, at(0)),
	}
	authenticatorProgram().testAlerts(t, well, map[string]whenAlert{
		"all is well": {},
		"it is not there at all": {
			less: ours + "mapping_entries",
			want: map[string]time.Duration{"MusterAuthenticatorAbsent": 5 * minute},
		},
		"STS is away": {
			change: []samples{w(theirs+"sts_connection_failures_total"+here, grows(60))},
			want:   map[string]time.Duration{"MusterAuthenticatorSTSUnreachable": 6 * minute},
		},
		"STS throttles": {
			change: []samples{w(theirs+"sts_throttling_total"+here, grows(60))},
			want:   map[string]time.Duration{"MusterAuthenticatorSTSThrottles": 11 * minute},
		},
		"a flood of keys that nobody knows": {
			change: []samples{w(ours+`questions_refused_total{key="unknown",pod="a"}`, grows(600))},
			want:   map[string]time.Duration{"MusterAuthenticatorQuestionsRefused": 6 * minute},
		},
		"STS is slow": {
			change: []samples{w(theirs+`authenticate_latency_seconds_bucket{result="success",le="0.25",pod="a"}`, grows(300)), w(theirs+`authenticate_latency_seconds_bucket{result="success",le="10",pod="a"}`, grows(600))},
			want:   map[string]time.Duration{"MusterAuthenticatorSlow": 11 * minute},
		},
		"aws-auth is edited badly": {
			change: []samples{w(ours+`mapping_problems{source="aws-auth",pod="a"}`, at(2))},
			want:   map[string]time.Duration{"MusterAuthenticatorMappingProblems": 15 * minute},
		},
		"the file is gone": {
			change: []samples{w(theirs+`dynamicfile_failures_total{pod="a"}`, grows(6))},
			want:   map[string]time.Duration{"MusterAuthenticatorMappingsNotRead": 7 * minute},
		},
		"a node's role is not mapped": {
			change: []samples{w(ours+`decisions_total{result="uknown_user",source="",pod="a"}`, grows(6))},
			want:   map[string]time.Duration{"MusterAuthenticatorNotMapped": 14 * minute},
		},
		"a flood of bad tokens": {
			change: []samples{w(ours+`log_lines_left_out_total{pod="a"}`, grows(6000))},
			want:   map[string]time.Duration{"MusterAuthenticatorFlood": 6 * minute},
		},
	})
}
