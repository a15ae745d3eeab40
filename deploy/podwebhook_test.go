// SPDX-License-Identifier: Apache-2.0

package deploy_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"muster.dev/muster/internal/iam/podwebhookconfig"
)

// The manifests are what their kinds take, their configuration is one, their parts fit each other, and nothing is
// granted that is not needed.
func TestPodWebhookManifests(t *testing.T) {
	for name, keeps := range map[string]bool{"pod-identity-webhook": true, "pod-identity-webhook-cert-manager": false} {
		t.Run(name, func(t *testing.T) { podWebhookManifest(t, "manifests/"+name+".yaml", keeps) })
	}
}

// podWebhookManifest checks one. keeps is true of a webhook that keeps its certificate itself.
func podWebhookManifest(t *testing.T, manifest string, keeps bool) {
	t.Helper()
	var deployment appsv1.Deployment
	var service corev1.Service
	var config corev1.ConfigMap
	var webhook admissionregistrationv1.MutatingWebhookConfiguration
	kinds := map[string]any{"Deployment": &deployment, "Service": &service, "ConfigMap": &config, "MutatingWebhookConfiguration": &webhook}
	for _, document := range documents(t, manifest) {
		var kind metav1.TypeMeta
		if err := yaml.Unmarshal([]byte(document), &kind); err != nil {
			t.Fatal(err)
		}
		if into, ok := kinds[kind.Kind]; ok {
			if err := yaml.UnmarshalStrict([]byte(document), into); err != nil {
				t.Errorf("%s: %v", kind.Kind, err)
			}
		}
	}
	file, err := podwebhookconfig.Read([]byte(config.Data["webhook.yaml"]))
	if err != nil {
		t.Fatal(err)
	}
	pod := deployment.Spec.Template
	if len(pod.Spec.Containers) != 1 || len(service.Spec.Ports) != 1 || len(webhook.Webhooks) != 1 {
		t.Fatal("there must be one container, port and webhook")
	}
	if port(pod, service.Spec.Ports[0].TargetPort.String()) != file.Server.BindAddress || service.Spec.Ports[0].Port != 443 ||
		port(pod, pod.Spec.Containers[0].ReadinessProbe.HTTPGet.Port.String()) != file.Server.Health {
		t.Errorf("the ports do not fit: %+v, %+v", file.Server, service.Spec.Ports)
	}
	if diff := cmp.Diff(service.Spec.Selector, deployment.Spec.Selector.MatchLabels); diff != "" || pod.Labels["app.kubernetes.io/name"] != service.Name {
		t.Error(diff)
	}
	w := webhook.Webhooks[0]
	if _, skipped := pod.Labels[w.ObjectSelector.MatchExpressions[0].Key]; !skipped || w.ClientConfig.Service == nil || w.ClientConfig.Service.Name != service.Name || *w.FailurePolicy != admissionregistrationv1.Ignore {
		t.Errorf("%+v", w)
	}
	rule := func(group, resource string, verbs []string, names ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: verbs, ResourceNames: names}
	}
	watch := []string{"get", "list", "watch"}
	want := map[string][]rbacv1.PolicyRule{
		"": {
			rule("", "serviceaccounts", watch), rule("", "pods", []string{"list"}), rule("", "events", []string{"create"}),
			rule("authentication.k8s.io", "tokenreviews", []string{"create"}), rule("authorization.k8s.io", "subjectaccessreviews", []string{"create"}), // of readers of metrics
		},
		webhookOf.Namespace: {rule("", "configmaps", watch, "pod-identity-webhook")},
	}
	if keeps {
		if diff := cmp.Diff(&webhookOf, file.Server.Authority); diff != "" || service.Name != webhookOf.Service || service.Namespace != webhookOf.Namespace || webhook.Name != webhookOf.WebhookConfiguration {
			t.Errorf("its authority (-want +got):\n%s", diff)
		}
		want[""] = append(want[""], rule("admissionregistration.k8s.io", "mutatingwebhookconfigurations", []string{"get", "patch"}, webhook.Name))
		want[webhookOf.Namespace] = append(want[webhookOf.Namespace], rule("", "secrets", []string{"get", "update"}, webhookOf.Secret))
	}
	if diff := cmp.Diff(want, granted(t, manifest, rbacv1.ServiceAccountKind, service.Name)); diff != "" {
		t.Errorf("the rules are not those that it needs (-want +got):\n%s", diff)
	}
}

// webhookOf is where the webhook of the manifests keeps its authority.
var webhookOf = podwebhookconfig.Authority{
	Namespace: "muster-pod-identity", Secret: "muster-pod-identity-webhook-authority", Service: "muster-pod-identity-webhook", WebhookConfiguration: "pod-identity-webhook",
}

// port is the address of a container's port, by its name.
func port(pod corev1.PodTemplateSpec, name string) string {
	for _, p := range pod.Spec.Containers[0].Ports {
		if p.Name == name {
			return fmt.Sprintf("0.0.0.0:%d", p.ContainerPort)
		}
	}
	return name
}
