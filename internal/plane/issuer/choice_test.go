// SPDX-License-Identifier: Apache-2.0

package issuer

import (
	"context"
	"errors"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"muster.dev/muster/internal/aws/account"
	"muster.dev/muster/internal/plane/portplan"
	"muster.dev/muster/internal/platform/statedir"
)

// record makes the account of a directory, and records a choice.
func record(t *testing.T, dir statedir.Dir, choice Choice) (unnamed, err error) {
	t.Helper()
	own, err := account.Make(dir, choice.Region)
	if err != nil {
		return nil, err
	}
	return choice.Record(t.Context(), dir, own)
}

// put writes a file of a state directory.
func put(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func private(t *testing.T, path string) {
	t.Helper()
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%s: %v, %v; want mode 0600", path, info, err)
	}
}

// says fails unless the error says all of it.
func says(t *testing.T, err error, want ...string) {
	t.Helper()
	for _, text := range want {
		if err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("error is %v, want one with %q", err, text)
		}
	}
}

func blue(dir statedir.Dir) statedir.Cluster { return dir.Cluster("blue") }

// withIssuers is a state directory after its first start.
func withIssuers(t *testing.T, host string) (statedir.Dir, Endpoint) {
	t.Helper()
	dir := statedir.Dir(t.TempDir())
	if _, err := record(t, dir, Choice{Host: host, ByAddress: host == ""}); err != nil {
		t.Fatal(err)
	}
	put(t, blue(dir).Record(), "kind: Cluster\n")
	at, err := ReadEndpoint(dir.Issuers())
	if err != nil {
		t.Fatal(err)
	}
	return dir, at
}

func TestIssuersAreAtTheAccountsAddress(t *testing.T) {
	dir, at := withIssuers(t, "")
	own, err := account.Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	permitted := Permitted(own.Address, 443)
	if at.Name() != own.Address.String() || (at.Port == 443) != permitted || (at.Host == own.Address.String()) != permitted || at.Port != 443 && (at.Port < portplan.Min || at.Port >= portplan.Max) {
		t.Errorf("they are at %+v, the account at %s", at, own.Address)
	}
	private(t, dir.Issuers())
	if _, err := record(t, dir, Choice{Host: "oidc.example.com"}); err != nil {
		t.Error(err)
	}
	if again, err := ReadEndpoint(dir.Issuers()); err != nil || again != at {
		t.Errorf("changed to %+v, %v", again, err)
	}
	i, err := EnsureCluster(dir, blue(dir))
	if err != nil || i.URL != "https://"+at.Host+"/id/"+strings.TrimPrefix(i.URL, "https://"+at.Host+"/id/") || i.Keys != i.URL+"/keys" {
		t.Errorf("%+v, %v", i, err)
	}
	private(t, blue(dir).Issuer())
	if again, err := EnsureCluster(dir, blue(dir)); err != nil || again != i {
		t.Errorf("%+v, %v; want %+v", again, err, i)
	}
	if planned, err := Planned(blue(dir)); err != nil || planned.URL != i.URL || planned.Keys != i.Keys {
		t.Errorf("planned %+v, %v", planned, err)
	}
	put(t, dir.Cluster("green").Record(), "kind: Cluster\n")
	if second, err := EnsureCluster(dir, dir.Cluster("green")); err != nil || second.URL == i.URL || !strings.HasPrefix(second.URL, "https://"+at.Host+"/id/") {
		t.Errorf("another cluster's is %+v, %v", second, err)
	}
	other, _ := withIssuers(t, "")
	if second, err := EnsureCluster(other, blue(other)); err != nil || second.URL == i.URL {
		t.Errorf("another account's is %+v, %v", second, err)
	}
}

func TestIssuerHost(t *testing.T) {
	dir, at := withIssuers(t, "oidc.example.com:8443")
	if i, err := EnsureCluster(dir, blue(dir)); err != nil || !strings.HasPrefix(i.URL, "https://oidc.example.com:8443/id/") || at.Name() != "oidc.example.com" || at.Port == 8443 {
		t.Errorf("%+v, %v", i, err)
	}
	for host, want := range map[string]string{
		"":                           "",
		"oidc.example.com:8443":      "",
		"oidc.example.com":           "issuers of the account in " + string(dir) + " are at oidc.example.com:8443, not oidc.example.com, and stay there: leave out the host",
		"https://oidc.example.com/x": `issuer host "https://oidc.example.com/x" must be`,
	} {
		if err := (Choice{Host: host}).Check(dir); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v; want %q", host, err, want)
		}
	}
	if err := (Choice{Host: "oidc.example.com"}).Check(statedir.Dir(t.TempDir())); err != nil {
		t.Error("at the first start:", err)
	}
	for _, host := range []string{"sts.us-east-1.amazonaws.com", "000000000000.dkr.ecr.us-east-1.amazonaws.com"} {
		if err := (Choice{Host: host}).Check(statedir.Dir(t.TempDir())); err == nil || !strings.Contains(err.Error(), "is a name of the account's AWS APIs") {
			t.Errorf("%s: %v", host, err)
		}
	}
	if err := os.Remove(dir.Issuers()); err != nil {
		t.Fatal(err)
	}
	if err := (Choice{Host: "oidc.example.com"}).Check(dir); err == nil {
		t.Error("where the record was lost any host will do")
	}
}

// Without a word the issuers have this host's own name, where that does and somebody may listen on the port of https.
func TestIssuersHaveTheHostsName(t *testing.T) {
	loopback := netip.MustParseAddr("127.0.1.1")
	does := func(context.Context) (string, netip.Addr, error) { return "vm", loopback, nil }
	doesNot := func(context.Context) (string, netip.Addr, error) {
		return "", netip.Addr{}, errors.New("it leads elsewhere")
	}
	for name, test := range map[string]struct {
		choice  Choice
		named   bool
		unnamed string
	}{
		"it does":                    {Choice{Pods: true, thisHost: does}, true, ""},
		"it does not":                {Choice{Pods: true, thisHost: doesNot}, false, "it leads elsewhere"},
		"it does not, without pods":  {Choice{thisHost: doesNot}, false, ""},
		"the address is to be taken": {Choice{Pods: true, thisHost: does, ByAddress: true}, false, ""},
	} {
		dir := statedir.Dir(t.TempDir())
		unnamed, err := record(t, dir, test.choice)
		if err != nil {
			t.Fatal(err)
		}
		at, err := ReadEndpoint(dir.Issuers())
		if err != nil {
			t.Fatal(err)
		}
		own, err := account.Read(dir)
		if err != nil {
			t.Fatal(err)
		}
		switch {
		case os.Geteuid() != 0: // pods there are none then
			test.named, test.unnamed = false, ""
		case at.Port != DefaultPort && !test.choice.ByAddress && test.choice.Pods:
			test.named, test.unnamed = false, "may not listen on port 443"
		}
		want := At(own.Address, at.Port)
		if test.named {
			want = Endpoint{Host: "vm", Port: 443, Loopback: loopback}
		}
		if at != want || (unnamed == nil) != (test.unnamed == "") || unnamed != nil && !strings.Contains(unnamed.Error(), test.unnamed) {
			t.Errorf("%s: %+v, %v; want %+v, %q", name, at, unnamed, want, test.unnamed)
		}
		if again, err := record(t, dir, test.choice); again != nil || err != nil {
			t.Errorf("%s, once they are made: %v, %v", name, again, err)
		}
		byAddress := Choice{ByAddress: true}.Check(dir)
		if (byAddress == nil) == test.named || test.named && !strings.Contains(byAddress.Error(), "are at vm, not at an address, and stay there") {
			t.Errorf("%s, asked for an address later: %v", name, byAddress)
		}
	}
}

// A record that was lost is not made anew: tokens and trust policies name what was in it.
func TestLostIssuer(t *testing.T) {
	dir, _ := withIssuers(t, "")
	put(t, filepath.Join(blue(dir).Etcd(), "member", "x"), "")
	_, err := EnsureCluster(dir, blue(dir))
	says(t, err, blue(dir).Issuer()+" is missing, and the cluster is in use: restore the file from a backup")
	if err := os.Remove(dir.Issuers()); err != nil {
		t.Fatal(err)
	}
	_, err = EnsureCluster(dir, blue(dir))
	says(t, err, dir.Issuers()+" is missing, and the state directory is in use: restore the file from a backup")
	_, _ = record(t, dir, Choice{})
	for _, path := range []string{blue(dir).Issuer(), dir.Issuers()} {
		if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s was made: %v", path, err)
		}
	}
}

func TestPlanIssuer(t *testing.T) {
	dir := statedir.Dir(t.TempDir())
	if i, err := Planned(blue(dir)); err != nil || i.URL != "https://ADDRESS/id/ID" || i.Keys != "https://ADDRESS/id/ID/keys" {
		t.Errorf("%+v, %v", i, err)
	}
	put(t, blue(dir).Issuer(), "{")
	_, err := Planned(blue(dir))
	says(t, err, "is damaged")
}
