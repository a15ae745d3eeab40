// SPDX-License-Identifier: Apache-2.0

package podwebhookconfig_test

import (
	"strings"
	"testing"
	"time"

	"muster.dev/muster/internal/iam/podwebhookconfig"
)

const least = `apiVersion: podidentity.muster.dev/v1alpha1
kind: PodIdentityWebhookConfiguration
server: {bindAddress: "127.0.0.1:443", certificate: /tls.crt, key: /tls.key, healthAddress: "127.0.0.1:9999"}
`

func TestRead(t *testing.T) {
	c, err := podwebhookconfig.Read([]byte(least))
	if err != nil || c.Grace() != 500*time.Millisecond {
		t.Errorf("%+v, %v", c, err)
	}
	if c, err = podwebhookconfig.Read([]byte(least + "gracePeriod: none\ncomposeRole: {accountID: '111122223333'}\n")); err != nil || c.Grace() != 0 || c.ComposeRole.Partition != "aws" {
		t.Errorf("%+v, %v", c, err)
	}
	for more, want := range map[string]string{
		"tokens: {}\n":                                  "tokens",
		"gracePeriod: 1m\n":                             "gracePeriod",
		"webIdentity: {expirationSeconds: 60}\n":        "webIdentity.expirationSeconds",
		"webIdentity: {mountPath: x}\n":                 "webIdentity.mountPath",
		"containerCredentials: {file: /x, writer: a}\n": "containerCredentials.writer",
		"containerCredentials: {file: x}\n":             "containerCredentials.file",
		"account: {trustFile: ca.pem}\n":                "account.trustFile",
		"account: {endpointURL: somewhere}\n":           "account.endpointURL",
		"composeRole: {accountID: '1'}\n":               "composeRole.accountID",
		"configMapNamespace: A_B\n":                     "configMapNamespace",
		"annotationDomain: A_B\n":                       "annotationDomain",
		"server: {bindAddress: x, healthAddress: y}\n":  "server",
	} {
		if _, err := podwebhookconfig.Read([]byte(least + more)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; want %s", more, err, want)
		}
	}
}

func TestAuthority(t *testing.T) {
	with := func(key, authority string) string {
		return strings.Replace(least, "key: /tls.key,", "key: "+key+", authority: {"+authority+"},", 1)
	}
	const right = "namespace: iam, secret: authority, service: hook, webhookConfiguration: hooks"
	c, err := podwebhookconfig.Read([]byte(with("/tls.crt", right)))
	if err != nil || *c.Server.Authority != (podwebhookconfig.Authority{Namespace: "iam", Secret: "authority", Service: "hook", WebhookConfiguration: "hooks"}) {
		t.Errorf("%+v, %v", c.Server.Authority, err)
	}
	for text, want := range map[string]string{
		strings.Replace(least, "127.0.0.1:443", ":443", 1):              "server.bindAddress",
		strings.Replace(least, "127.0.0.1:9999", "localhost:9999", 1):   "server.healthAddress",
		with("/tls.key", right):                                         "server.key",
		with("/tls.crt", ""):                                            "server.authority.namespace",
		with("/tls.crt", strings.Replace(right, "iam", "a.b", 1)):       "server.authority.namespace",
		with("/tls.crt", strings.Replace(right, "hook,", "a/b,", 1)):    "server.authority.service",
		with("/tls.crt", strings.Replace(right, "authority", "A_B", 1)): "server.authority.secret",
		with("/tls.crt", strings.Replace(right, ": hooks", ": ''", 1)):  "server.authority.webhookConfiguration",
	} {
		if _, err := podwebhookconfig.Read([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; want %s", text, err, want)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(least))
	f.Fuzz(func(t *testing.T, raw []byte) {
		if c, err := podwebhookconfig.Read(raw); err == nil && (c.Server.Certificate == "" || c.Grace() < 0) {
			t.Fatalf("%+v", c)
		}
	})
}
