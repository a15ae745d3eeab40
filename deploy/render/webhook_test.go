// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

const somePEM = `"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"`

func TestWebhookValuesThatAreRefused(t *testing.T) {
	for name, tc := range map[string]struct{ values, err string }{
		"a value that is not known":      {"metrics: {}", "additional properties 'metrics' not allowed"},
		"a field not known":              {"config: {server: {}}", "additional properties 'server' not allowed"},
		"the chart's own field":          {"config: {account: {trustFile: /a}}", "additional properties 'trustFile' not allowed"},
		"a token that ends too soon":     {"config: {webIdentity: {expirationSeconds: 60}}", "at '/config/webIdentity/expirationSeconds'"},
		"an account that is a number":    {"config: {composeRole: {accountID: 111122223333}}", "at '/config/composeRole/accountID'"},
		"an association of nobody":       {"associations: [{namespace: a}]", "at '/associations/0'"},
		"an authority that is not PEM":   {"clientCA: /etc/ca.crt", "at '/clientCA'"},
		"a key among the authorities":    {`trust: "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"`, "at '/trust'"},
		"a bundle that would be YAML":    {`webhook: {timeoutSeconds: 1, caBundle: "a}"}`, "at '/webhook/caBundle'"},
		"a timeout that there cannot be": {"webhook: {timeoutSeconds: 31}", "at '/webhook/timeoutSeconds'"},
		"an address of nobody":           {"address: 127.0.0.1", "at '/address'"},
		"nodes not known":                {"nodes: workers", "at '/nodes'"},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := loadChartIn(deploy, webhookChart)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := renderAs(c, values(t, tc.values), webhookRelease); err == nil || !strings.Contains(err.Error(), tc.err) {
				t.Errorf("error %v, want %q", err, tc.err)
			}
		})
	}
}

func TestWebhookFileIsPassedOn(t *testing.T) {
	all := objectsOf(t, webhookChart, webhookRelease, `
config:
  region: eu-west-1
  account: {endpointURL: "https://sts.example.com"}
  containerCredentials: {audience: vault}
  composeRole: {accountID: "111122223333"}
associations: [{namespace: shop, serviceAccount: app}]
trust: `+somePEM+`
clientCA: `+somePEM+`
certificate: {secret: tls}
address: "::"
webhook: {caBundle: QUFBQQ==, namespaceSelector: {matchLabels: {a: b}}}
`)
	cm := only[*corev1.ConfigMap](t, all)
	want := values(t, `
apiVersion: podidentity.muster.dev/v1alpha1
kind: PodIdentityWebhookConfiguration
server: {bindAddress: "[::]:8443", certificate: /tls/tls.crt, key: /tls/tls.key, healthAddress: "[::]:9440", metricsAddress: "[::]:9441", clientCA: /etc/muster/client-ca.pem}
configMapNamespace: muster-pod-identity
region: eu-west-1
account: {endpointURL: "https://sts.example.com", trustFile: /etc/muster/trust.pem}
containerCredentials: {file: /etc/muster/associations.json, audience: vault}
composeRole: {accountID: "111122223333"}
`)
	if diff := cmp.Diff(want, values(t, cm.Data["webhook.yaml"])); diff != "" {
		t.Errorf("file (-want +got):\n%s", diff)
	}
	const pem = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"
	if strings.TrimSpace(cm.Data["trust.pem"])+"\n" != pem || strings.TrimSpace(cm.Data["client-ca.pem"])+"\n" != pem ||
		strings.TrimSpace(cm.Data["associations.json"]) != `{"identities":[{"namespace":"shop","serviceAccount":"app"}]}` {
		t.Errorf("%q", cm.Data)
	}
	w := only[*admissionregistrationv1.MutatingWebhookConfiguration](t, all).Webhooks[0]
	if string(w.ClientConfig.CABundle) != "AAAA" || w.NamespaceSelector.MatchLabels["a"] != "b" || *w.TimeoutSeconds != 10 {
		t.Errorf("%+v", w)
	}
	if n := len(every[*corev1.Secret](all)); n != 0 {
		t.Errorf("%d Secrets beside the one that is given", n)
	}
}

// A change of the pods' files makes new pods, except for associations, which the webhook reads again.
func TestWebhookPodsFollowTheirFiles(t *testing.T) {
	hash := func(text string) string {
		return only[*appsv1.Deployment](t, objectsOf(t, webhookChart, webhookRelease, text)).Spec.Template.Annotations["muster.dev/config-hash"]
	}
	plain, some := hash(""), hash("associations: [{namespace: a, serviceAccount: b}]")
	for _, other := range []string{"config: {region: eu-west-1}", "trust: " + somePEM, "clientCA: " + somePEM, "certificate: {secret: tls}"} {
		if hash(other) == plain {
			t.Errorf("with %s the pods stay", other)
		}
	}
	if hash("associations: [{namespace: a, serviceAccount: c}]") != some {
		t.Error("another association makes other pods")
	}
}
