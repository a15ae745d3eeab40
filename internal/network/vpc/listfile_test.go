// SPDX-License-Identifier: Apache-2.0

package vpc

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// numbers is a list of numbers below ten.
var numbers = listFile[int]{
	name: "numbers.json", key: "numbers", what: "numbers of the VPC", most: 60, fix: ": count again",
	compare: func(a, b int) int { return a - b },
	equal:   func(a, b int) bool { return a == b },
	validate: func(_ *Network, all []int) error {
		if slices.ContainsFunc(all, func(i int) bool { return i > 9 }) {
			return errors.New("one is above nine")
		}
		return nil
	},
}

func TestListFile(t *testing.T) {
	t.Parallel()
	n := undone(t)
	path := filepath.Join(n.dir, "numbers.json")
	if all, err := numbers.read(n); err != nil || all != nil {
		t.Errorf("of a file that is not there: %v, %v", all, err)
	}
	set := func(all ...int) func([]int) []int { return func([]int) []int { return all } }
	if changed, err := numbers.change(n, set(3, 1)); err != nil || !changed {
		t.Fatalf("changed is %v: %v", changed, err)
	}
	if all, err := numbers.read(n); err != nil || !slices.Equal(all, []int{1, 3}) {
		t.Errorf("%v, %v", all, err)
	}
	if changed, err := numbers.change(n, set(1, 3)); err != nil || changed {
		t.Errorf("the same once more: changed is %v: %v", changed, err)
	}
	for want, all := range map[string][]int{
		"changing numbers of the VPC: one is above nine":                      {10},
		"changing numbers of the VPC: they take 66 bytes, and 60 are allowed": slices.Repeat([]int{1}, 20),
	} {
		if changed, err := numbers.change(n, set(all...)); changed || err == nil || err.Error() != want {
			t.Errorf("changed is %v: %v, want %s", changed, err, want)
		}
	}
	if all, err := numbers.read(n); err != nil || !slices.Equal(all, []int{1, 3}) {
		t.Errorf("after a refusal: %v, %v", all, err)
	}
	for content, want := range map[string]string{
		`{`:                               "unexpected end of JSON input",
		`{"numbers":[1]}`:                 "version is missing, want 1",
		`{"version":2,"numbers":[1]}`:     "version is 2, want 1",
		`{"version":1,"numbers":{}}`:      "json: cannot unmarshal object",
		`{"version":1,"numbers":[10]}`:    "one is above nine",
		`{}` + strings.Repeat(" ", 59):    "it has 61 bytes, and 60 are allowed",
		`{"version":1,"numbers":["one"]}`: "json: cannot unmarshal string",
	} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		all, err := numbers.read(n)
		if err == nil || !strings.HasPrefix(err.Error(), fmt.Sprintf("reading %s: %s", path, want)) || !strings.HasSuffix(err.Error(), ": count again") {
			t.Errorf("%s: %v, %v", content, all, err)
		}
	}
}

// FuzzEndpoints reads whatever is in the file, and what it takes is valid.
func FuzzEndpoints(f *testing.F) {
	f.Add([]byte(`{"version":1,"endpoints":[{"cluster":"one","addresses":["192.168.64.20"],"apiServer":"127.0.0.1:6443","egressSocket":"/run/egress","podCIDR":"10.244.0.0/16"}]}`))
	f.Add([]byte(`{"version":1,"endpoints":[{"addresses":["::1"]}]}`))
	n, err := New(Config{Dir: filepath.Join(f.TempDir(), "vpc"), ID: vpcID, CIDR: cidr, Subnets: subnets})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		all, err := endpointsFile.parse(n, raw)
		if err != nil {
			return
		}
		if err := n.validateEndpoints(all); err != nil {
			t.Errorf("%+v: %v", all, err)
		}
		for _, e := range all {
			for _, a := range e.Addresses {
				if _, in := n.SubnetOf(a); !in {
					t.Errorf("%s is in no subnet", a)
				}
			}
		}
	})
}
