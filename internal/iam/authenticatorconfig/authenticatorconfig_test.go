// SPDX-License-Identifier: Apache-2.0

package authenticatorconfig

import (
	"os"
	"strings"
	"testing"
	"time"

	"muster.dev/muster/internal/iam/identity"
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

func TestHostsAlone(t *testing.T) {
	c, err := Read([]byte(head + "server: {stateDir: /var/lib/a}\nsts: {hosts: [sts.example.org], hostsOnly: true}\n"))
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := must(c.Hosts()).Find("https", "sts.example.org"); !ok {
		t.Error("the host is not known")
	}
	if _, ok := must(c.Hosts()).Find("https", "sts.eu-west-1.amazonaws.com"); ok {
		t.Error("AWS's hosts are known, too")
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

const musterHead = head + "server: {stateDir: /a}\nbackend: muster\nmuster: "

func TestWhereMusterIs(t *testing.T) {
	for _, where := range []string{"socket: /s", "address: '10.0.0.1:8443'", "address: 'account.example:443'"} {
		c, err := Read([]byte(musterHead + "{" + where + ", ca: /c, credential: /k}\n"))
		if err != nil || c.Muster.StaleAfter != "3s" || c.Muster.CA != "/c" || c.Muster.Credential != "/k" || c.Limits.PerKey != 32 {
			t.Errorf("%s: %+v, %v", where, c.Muster, err)
		}
	}
}

func TestWhatIsWrongIsToldWithItsPath(t *testing.T) {
	for _, tc := range []struct{ name, text, want string }{
		{"nothing", "", "the file is empty"},
		{"an unknown field", head + "server: {stateDir: /a, port: 1}\n", "server.port"},
		{"no cluster", strings.Replace(head, "clusterID: demo", "", 1) + "server: {stateDir: /a}\n", "clusterID: Required"},
		{"no certificates", head, "server.stateDir: Required"},
		{"metrics nowhere", head + "server: {metricsAddress: localhost, stateDir: /s}\n", "server.metricsAddress: Invalid"},
		{"readers of no metrics", head + "server: {metricsClientCA: /ca, stateDir: /s}\n", "server.metricsClientCA: Forbidden"},
		{"readers that nobody knows", head + "server: {metricsAddress: '127.0.0.1:1', stateDir: /s}\nmapping: {file: /m, fileOnly: true}\n", "server.metricsAddress: Forbidden"},
		{"everybody may ask", head + "server: {bindAddress: '0.0.0.0:1', certificate: /c, key: /k}\n", "server.clientCA: Required"},
		{"a relative path", head + "server: {stateDir: a}\n", "must be an absolute path"},
		{"a mode that there is not", head + "server: {stateDir: /a}\nmapping: {mode: BOTH}\n", "mapping.mode"},
		{"muster without a socket", head + "server: {stateDir: /a}\nbackend: muster\n", "muster: Required"},
		{"muster nowhere", musterHead + "{ca: /c, credential: /k}\n", "muster.socket: Required"},
		{"muster at two places", musterHead + "{socket: /s, address: '10.0.0.1:8443', ca: /c, credential: /k}\n", "muster.address: Forbidden"},
		{"muster at half an address", musterHead + "{address: '10.0.0.1', ca: /c, credential: /k}\n", "must be a host and a port"},
		{"muster without an authority", musterHead + "{socket: /s, credential: /k}\n", "muster.ca: Required"},
		{"muster without a credential", musterHead + "{socket: /s, ca: /c}\n", "muster.credential: Required"},
		{"muster with a relative credential", musterHead + "{socket: /s, ca: /c, credential: k}\n", "muster.credential: Invalid"},
		{"muster on a relative socket", musterHead + "{socket: s, ca: /c, credential: /k}\n", "muster.socket: Invalid"},
		{"a socket without the backend", head + "server: {stateDir: /a}\nmuster: {socket: /s}\n", "muster: Forbidden"},
		{"an account as a number", head + "server: {stateDir: /a}\nscrubbedAccounts: ['12']\n", "scrubbedAccounts[0]"},
		{"a partition that there is not", head + "server: {stateDir: /a}\npartition: mars\n", "mars"},
		{"an endpoint with a path", head + "server: {stateDir: /a}\nsts: {endpoints: {h: 'https://x/y'}}\n", "sts.endpoints[h]"},
		{"no hosts at all", head + "server: {stateDir: /a}\nsts: {hostsOnly: true}\n", "sts.hosts: Required"},
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
	raw, err := os.ReadFile("../../../docs/authenticator.md")
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

func TestWhatIsWrongWithTrustedNamesIsToldWithItsPath(t *testing.T) {
	const good = "server: {stateDir: /a}\nmapping: {trustedSessionNames: "
	const role, notRole = "'arn:aws:iam::111122223333:role/p/h'", "must be arn:aws:iam::ACCOUNT:role/NAME, with the role's path if it has one"
	for _, tc := range []struct{ name, text, want string }{
		{"one", "[{role: " + role + ", names: [mi-*]}]", ""},
		{"two roles", "[{role: " + role + ", names: [mi-*, edge-1]}, {role: 'arn:aws:iam::444455556666:role/h', names: [mi-*]}]", ""},
		{"none", "[]", ""},
		{"no names", "[{role: " + role + "}]", "mapping.trustedSessionNames[0].names: Required value: the names that its sessions have, such as mi-*"},
		{"an empty name", "[{role: " + role + ", names: [mi-*, '']}]", `mapping.trustedSessionNames[0].names[1]: Invalid value: "": must have at least 3 characters beside *`},
		{"every name", "[{role: " + role + ", names: ['*']}]", `mapping.trustedSessionNames[0].names[0]: Invalid value: "*": must have at least 3 characters beside *`},
		{"an instance's", "[{role: " + role + ", names: ['i-0*']}]", `mapping.trustedSessionNames[0].names[0]: Invalid value: "i-0*": must not begin with i- or ip-`},
		{"a name twice", "[{role: " + role + ", names: [mi-*, mi-*]}]", `mapping.trustedSessionNames[0].names[1]: Duplicate value: "mi-*"`},
		{"names that are text", "[{role: " + role + ", names: mi-*}]", "names: Invalid value: string: must be a list"},
		{"too many names", "[{role: " + role + ", names: [" + strings.Repeat("mi-*,", 101) + "]}]", "mapping.trustedSessionNames[0].names: Too many: 101: must have at most 100 items"},
		{"too many roles", "[" + strings.Repeat("{role: "+role+", names: [mi-*]},", 101) + "]", "mapping.trustedSessionNames: Too many: 101: must have at most 100 items"},
		{"no role", "[{names: [mi-*]}]", `mapping.trustedSessionNames[0].role: Invalid value: "": "" is not an ARN`},
		{"a role's name", "[{role: h, names: [mi-*]}]", `mapping.trustedSessionNames[0].role: Invalid value: "h": "h" is not an ARN`},
		{"a pattern of roles", "[{role: 'arn:aws:iam::111122223333:role/h*', names: [mi-*]}]", notRole},
		{"a session", "[{role: 'arn:aws:sts::111122223333:assumed-role/h/mi-1', names: [mi-*]}]", notRole},
		{"a user", "[{role: 'arn:aws:iam::111122223333:user/h', names: [mi-*]}]", notRole},
		{"another partition", "[{role: 'arn:aws-cn:iam::111122223333:role/h', names: [mi-*]}]", "mapping.trustedSessionNames[0].role: Invalid value: \"arn:aws-cn:iam::111122223333:role/h\": must be of the partition aws"},
		{"a role twice", "[{role: " + role + ", names: [mi-*]}, {role: 'arn:aws:iam::111122223333:role/H', names: [edge-1]}]", "mapping.trustedSessionNames[1].role: Duplicate value"},
		{"an unknown field", "[{role: " + role + ", names: [mi-*], all: true}]", "mapping.trustedSessionNames[0].all"},
	} {
		c, err := Read([]byte(head + good + tc.text + "}\n"))
		if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v; want %s", tc.name, err, tc.want)
		}
		if err == nil && len(c.Options().Trusted) != len(c.Mapping.TrustedSessionNames) {
			t.Errorf("%s: %+v", tc.name, c.Options().Trusted)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(head + "server: {stateDir: /a}\n"))
	f.Add([]byte(head + "server: {stateDir: /a}\nmapping: {trustedSessionNames: [{role: 'arn:aws:iam::111122223333:role/p/h', names: ['mi-*', edge-1]}]}\n"))
	f.Add([]byte("{"))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := Read(data)
		if err != nil {
			return
		}
		if _, problems := identity.NewTable(c.Options(), nil, nil); c.ClusterID == "" || c.Server.Key == "" || len(problems) > 0 {
			t.Errorf("%+v: %v", c, problems)
		}
	})
}
