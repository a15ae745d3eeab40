// SPDX-License-Identifier: Apache-2.0

package account

import (
	"bytes"
	"errors"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"muster.dev/muster/internal/platform/statedir"
)

// use makes a directory one that a cluster was started in.
func use(t *testing.T, dir statedir.Dir) {
	t.Helper()
	if err := os.MkdirAll(string(dir.Cluster("default")), 0o700); err != nil {
		t.Fatal(err)
	}
}

func TestMake(t *testing.T) {
	dir := statedir.Dir(t.TempDir())
	if _, err := Read(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("reading what was never made: %v", err)
	}
	made, err := makeWith(dir, "eu-west-1", bytes.NewReader([]byte{0x9d, 14, 201}))
	if err != nil || made.ID != "000000000000" || made.Region.Domain() != "eu-west-1.compute.internal" || made.Address != netip.MustParseAddr("127.93.14.201") {
		t.Fatalf("made %+v, %v", made, err)
	}
	raw, err := os.ReadFile(filepath.Join(string(dir), "account.json"))
	const want = `{
  "version": 1,
  "id": "000000000000",
  "region": "eu-west-1",
  "address": "127.93.14.201"
}
`
	if err != nil || string(raw) != want {
		t.Errorf("the file holds %s, %v", raw, err)
	}
	if info, err := os.Stat(dir.Account()); err != nil || info.Mode() != 0o600 {
		t.Errorf("its mode is %v, %v", info.Mode(), err)
	}
	use(t, dir)
	for _, name := range []string{"", "eu-west-1"} {
		if again, err := Make(dir, name); err != nil || again != made {
			t.Errorf("Make(%q) again: %+v, %v; want what was made", name, again, err)
		}
	}
	if read, err := Read(dir); err != nil || read != made {
		t.Errorf("read %+v, %v", read, err)
	}
	for name, want := range map[string]string{
		"us-east-1": "the account in " + string(dir) + " is in eu-west-1, not us-east-1, and stays there: leave out --region, or choose another --state-dir",
		"moon-1":    `unknown region "moon-1"; there are: af-south-1, `,
	} {
		if _, err := Make(dir, name); err == nil || !strings.HasPrefix(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("Make(%q): %v", name, err)
		}
	}
	if after, err := os.ReadFile(dir.Account()); err != nil || !bytes.Equal(raw, after) {
		t.Errorf("the file was changed to %s, %v", after, err)
	}
}

func TestDefault(t *testing.T) {
	made, err := Make(statedir.Dir(t.TempDir()), "")
	if err != nil || made.Region.Name != "us-east-1" || made.Region.Zones[0].Name != "us-east-1a" {
		t.Errorf("%+v, %v", made, err)
	}
}

// Plan changes nothing.
func TestPlan(t *testing.T) {
	dir := statedir.Dir(t.TempDir())
	planned, err := Plan(dir, "sa-east-1")
	if err != nil || planned.Region.Name != "sa-east-1" || planned.ID != DefaultID || planned.Address.IsValid() {
		t.Errorf("%+v, %v", planned, err)
	}
	if _, err := Plan(dir, "sa-east-9"); err == nil {
		t.Error("a region that there is not is planned")
	}
	if entries, err := os.ReadDir(string(dir)); err != nil || len(entries) != 0 {
		t.Errorf("it wrote %v, %v", entries, err)
	}
}

// No account is made in the place of one that was lost, whatever asks.
func TestLost(t *testing.T) {
	dir := statedir.Dir(t.TempDir())
	use(t, dir)
	for _, err := range []error{second(Read(dir)), second(Make(dir, "")), second(Make(dir, "us-east-1")), second(Plan(dir, ""))} {
		if err == nil || errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "account.json is missing, and the state directory is in use: restore the file") {
			t.Errorf("got %v", err)
		}
	}
	if _, err := os.Stat(dir.Account()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file was made: %v", err)
	}
}

// A directory is in use from its first key or cluster on: a crash before the account was made leaves a layout at most.
func TestInUse(t *testing.T) {
	dir := statedir.Dir(t.TempDir())
	if err := errors.Join(os.WriteFile(dir.Layout(), nil, 0o600), os.Mkdir(dir.PKI(), 0o700), os.Mkdir(dir.Clusters(), 0o700)); err != nil {
		t.Fatal(err)
	}
	if _, err := Plan(dir, ""); err != nil {
		t.Error("with a layout alone:", err)
	}
	if err := os.WriteFile(filepath.Join(dir.PKI(), "ca.pem"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Plan(dir, ""); err == nil {
		t.Error("with a key another account is made")
	}
}

func second(_ Account, err error) error { return err }

func TestDamaged(t *testing.T) {
	const good = `{"version": 1, "id": "000000000000", "region": "us-east-1", "address": "127.93.14.201"}`
	for name, test := range map[string]struct{ from, to, want string }{
		"whole":             {"", "", ""},
		"empty":             {good, "", "is damaged: it is not a JSON object; restore it from a backup"},
		"zeros":             {good, "\x00\x00", "it is not a JSON object"},
		"a list":            {good, "[]", "it is not a JSON object"},
		"cut":               {`.201"}`, "", "is damaged: address: unexpected EOF"},
		"cut after a value": {`, "address": "127.93.14.201"}`, "", "is damaged: "},
		"two":               {good, good + good, "there is more after the object"},
		"trailing":          {good, good + "x", "there is more after the object"},
		"unknown key":       {`"id"`, `"ID"`, `key "ID" is unknown, or there twice`},
		"key twice":         {`"version": 1`, `"version": 1, "version": 1`, `key "version" is unknown, or there twice`},
		"region twice":      {`"region"`, `"region": "eu-west-1", "region"`, `key "region" is unknown, or there twice`},
		"no version":        {`"version": 1, `, "", "version is 0 and must be 1"},
		"null":              {`"version": 1`, `"version": null`, "version is 0 and must be 1"},
		"version as text":   {`"version": 1`, `"version": "1"`, "version: json: cannot unmarshal string"},
		"older":             {`"version": 1`, `"version": -1`, "version is -1 and must be 1; restore it"},
		"later":             {`"version": 1`, `"version": 2`, "has version 2, and this Muster knows 1: use the Muster that made it, or a newer one"},
		"another id":        {"000000000000", "111122223333", `id is "111122223333" and must be "000000000000"`},
		"no id":             {`"id": "000000000000", `, "", `id is "" and must be`},
		"no such region":    {"us-east-1", "us-east-9", `region: unknown region "us-east-9"; there are: af-south-1, `},
		"no region":         {`"region": "us-east-1", `, "", `region: unknown region ""`},
		"no address":        {`, "address": "127.93.14.201"`, "", `address is "" and must be one in 127.64.0.0/10`},
		"a name":            {"127.93.14.201", "localhost", `address is "localhost"`},
		"everybody's":       {"127.93.14.201", "127.0.0.1", `address is "127.0.0.1"`},
		"all":               {"127.93.14.201", "0.0.0.0", `address is "0.0.0.0"`},
		"not loopback":      {"127.93.14.201", "10.93.14.201", `address is "10.93.14.201"`},
		"below":             {"127.93.14.201", "127.63.255.254", `address is "127.63.255.254"`},
		"above":             {"127.93.14.201", "127.128.0.1", `address is "127.128.0.1"`},
		"network":           {"127.93.14.201", "127.93.14.0", `address is "127.93.14.0"`},
		"broadcast":         {"127.93.14.201", "127.127.255.255", `address is "127.127.255.255"`},
		"IPv6":              {"127.93.14.201", "::1", `address is "::1"`},
		"IPv4 mapped":       {"127.93.14.201", "::ffff:127.93.14.201", `address is "::ffff:127.93.14.201"`},
		"with a port":       {"127.93.14.201", "127.93.14.201:443", `address is "127.93.14.201:443"`},
		"with a space":      {"127.93.14.201", "127.93.14.201 ", `address is "127.93.14.201 "`},
	} {
		t.Run(name, func(t *testing.T) {
			dir := statedir.Dir(t.TempDir())
			use(t, dir)
			text := strings.Replace(good, test.from, test.to, 1)
			if err := os.WriteFile(dir.Account(), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			_, err := Make(dir, "us-east-1")
			if (err == nil) != (test.want == "") || err != nil && (!strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), dir.Account()) || strings.Contains(err.Error(), "\n")) {
				t.Errorf("got %v, want %q", err, test.want)
			}
			if left, err := os.ReadFile(dir.Account()); err != nil || string(left) != text {
				t.Errorf("the file was changed to %s, %v", left, err)
			}
		})
	}
}

func TestAddress(t *testing.T) {
	for _, test := range []struct {
		drawn []byte
		want  string
	}{
		{[]byte{0, 0, 1}, "127.64.0.1"},
		{[]byte{255, 255, 254}, "127.127.255.254"},
		{[]byte{1, 2, 0, 3, 4, 255, 5, 6, 7}, "127.69.6.7"}, // the first two look like a network's and a broadcast's
	} {
		if got, err := chooseAddress(bytes.NewReader(test.drawn)); err != nil || got.String() != test.want || !got.IsLoopback() || !own(got) {
			t.Errorf("of %v came %v, %v; want %s", test.drawn, got, err, test.want)
		}
	}
	dir := statedir.Dir(t.TempDir())
	if _, err := makeWith(dir, "", bytes.NewReader(nil)); err == nil {
		t.Error("an address came of nothing")
	}
	if _, err := os.Stat(dir.Account()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file without an address: %v", err)
	}
}
