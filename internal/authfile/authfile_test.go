// SPDX-License-Identifier: Apache-2.0

package authfile

import (
	"os"
	"strings"
	"testing"
	"time"
)

const head = "apiVersion: authenticator.muster.dev/v1alpha1\nkind: AuthenticatorConfiguration\nclusterID: demo\n"

func TestDefaults(t *testing.T) {
	c, err := Read([]byte(head + "server: {stateDir: /var/lib/a}\n"))
	if err != nil {
		t.Fatal(err)
	}
	if c.Server.BindAddress != "127.0.0.1:21362" || c.Server.Key != "/var/lib/a/key.pem" || c.Server.ClientCA != "/var/lib/a/client-ca.pem" || c.Backend != BackendSTS ||
		c.Mapping.Mode != ModeAPIAndConfigMap || c.Cache.TTL.Value() != time.Minute || c.STS.Connections != 64 || c.Options().Partition != "aws" {
		t.Errorf("%+v", c)
	}
	if _, ok := must(c.Hosts()).Find("https", "sts.eu-west-1.amazonaws.com"); !ok {
		t.Error("AWS's hosts are not known")
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func TestWhatIsWrongIsToldWithItsPath(t *testing.T) {
	for _, tc := range []struct{ name, text, want string }{
		{"nothing", "", "the file is empty"},
		{"an unknown field", head + "server: {stateDir: /a, port: 1}\n", "server.port"},
		{"no cluster", strings.Replace(head, "clusterID: demo", "", 1) + "server: {stateDir: /a}\n", "clusterID: Required"},
		{"no certificates", head, "server.stateDir: Required"},
		{"everybody may ask", head + "server: {bindAddress: '0.0.0.0:1', certificate: /c, key: /k}\n", "server.clientCA: Required"},
		{"a relative path", head + "server: {stateDir: a}\n", "must be an absolute path"},
		{"a mode that there is not", head + "server: {stateDir: /a}\nmapping: {mode: BOTH}\n", "mapping.mode"},
		{"muster without a socket", head + "server: {stateDir: /a}\nbackend: muster\n", "muster: Required"},
		{"a socket without the backend", head + "server: {stateDir: /a}\nmuster: {socket: /s}\n", "muster: Forbidden"},
		{"an account as a number", head + "server: {stateDir: /a}\nscrubbedAccounts: ['12']\n", "scrubbedAccounts[0]"},
		{"a partition that there is not", head + "server: {stateDir: /a}\npartition: mars\n", "mars"},
		{"an endpoint with a path", head + "server: {stateDir: /a}\nsts: {endpoints: {h: 'https://x/y'}}\n", "sts.endpoints[h]"},
		{"a long TTL", head + "server: {stateDir: /a}\ncache: {ttl: 24h}\n", "cache.ttl"},
		{"a role that is none", head + "server: {stateDir: /a}\nec2: {instanceProfiles: [{arn: 'arn:aws:iam::111122223333:instance-profile/n', role: nodes}]}\n", "ec2.instanceProfiles[0].role"},
		{"policies without entries", head + "server: {stateDir: /a}\nmapping: {mode: CONFIG_MAP}\naccessPolicies: {enabled: true}\n", "accessPolicies.enabled"},
		{"a file alone that is not named", head + "server: {stateDir: /a}\nmapping: {fileOnly: true}\n", "mapping.file"},
		{"a source that there is not", head + "server: {stateDir: /a}\nmapping: {reservedPrefixes: {ldap: [x]}}\n", "ldap"},
	} {
		if _, err := Read([]byte(tc.text)); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v; want %s", tc.name, err, tc.want)
		}
	}
}

// The page's example is read by the program, but for what belongs to the other backend.
func TestThePageIsTrue(t *testing.T) {
	raw, err := os.ReadFile("../../docs/authenticator.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, ok := strings.Cut(string(raw), "    apiVersion: authenticator.muster.dev/v1alpha1\n")
	if !ok {
		t.Fatal("there is no example")
	}
	var b strings.Builder
	b.WriteString("apiVersion: authenticator.muster.dev/v1alpha1\n")
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "    ") {
			break
		}
		if !strings.HasPrefix(line, "    muster:") {
			b.WriteString(line[4:])
		}
	}
	if _, err := Read([]byte(b.String())); err != nil {
		t.Errorf("%v\n%s", err, b.String())
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(head + "server: {stateDir: /a}\n"))
	f.Add([]byte("{"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if c, err := Read(data); err == nil && (c.ClusterID == "" || c.Server.Key == "") {
			t.Errorf("%+v", c)
		}
	})
}
