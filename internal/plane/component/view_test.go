// SPDX-License-Identifier: Apache-2.0

package component

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// paths are those below the state directory that a text names.
var paths = regexp.MustCompile(`/var/lib/muster/[^\s",']+`)

// What a component's flags and files name it sees, and what it sees is its cluster's: no key of the account's or of
// another cluster's.
func TestViews(t *testing.T) {
	c := fixed(true)
	c.Simulates = true
	specs, err := Specs(c)
	if err != nil {
		t.Fatal(err)
	}
	readers := map[string]string{}
	for _, spec := range specs {
		v := spec.View
		if v == nil {
			if !slices.Contains([]string{WebhookProxy, Simulator}, spec.Name) {
				t.Errorf("%s runs as root", spec.Name)
			}
			continue
		}
		without := spec
		without.View = nil
		if spec.Hash() != without.Hash() {
			t.Errorf("%s that runs as root would be started again", spec.Name)
		}
		for _, file := range v.Reads {
			if by := readers[file]; by != "" {
				t.Errorf("%s is read by %s and %s", file, by, spec.Name)
			}
			readers[file] = spec.Name
		}
		for _, file := range spec.Credentials {
			probes := spec.Probe != nil && spec.Probe.CredentialFile == file
			if needed := slices.Contains(slices.Concat(v.Reads, v.Shared, v.Public, v.Fixed), file); needed == probes {
				t.Errorf("%s sees %s: %v, and its supervisor needs it: %v", spec.Name, file, needed, probes)
			}
		}
		for _, path := range slices.Concat(v.Reads, v.Shared, v.Public, v.Writes, v.Adds) {
			if !strings.HasPrefix(path, string(c.Dir)+"/") {
				t.Errorf("%s sees %s, which is not its cluster's", spec.Name, path)
			}
		}
		for _, path := range slices.Concat(v.Public, v.Fixed) {
			if !regexp.MustCompile(`ca\.pem$`).MatchString(path) {
				t.Errorf("%s is made readable to all", path)
			}
		}
		named := paths.FindAllString(strings.Join(spec.Args, "\n"), -1)
		for _, file := range spec.Files {
			named = append(named, paths.FindAllString(file.Content, -1)...)
		}
		seen := slices.Concat(v.Reads, v.Shared, v.Public, v.Fixed, v.Listens, v.Connects)
		dirs := slices.Concat(v.Writes, v.Adds, []string{c.Dir.Component(spec.Name)})
		for _, path := range named {
			if !slices.Contains(seen, path) && !slices.Contains(dirs, path) && !slices.Contains(dirs, filepath.Dir(path)) {
				t.Errorf("%s does not see %s, which it is told of", spec.Name, path)
			}
		}
	}
	for _, spec := range specs {
		if spec.View == nil {
			continue
		}
		for _, other := range specs {
			if other.View == nil || other.Name == spec.Name {
				continue
			}
			v := other.View
			for _, path := range slices.Concat(v.Reads, v.Shared, v.Public, v.Writes, v.Adds) {
				if slices.ContainsFunc(spec.View.Writes, func(own string) bool { return path == own || strings.HasPrefix(path, own+"/") }) {
					t.Errorf("%s sees %s, which is on the disk of %s", other.Name, path, spec.Name)
				}
			}
		}
		for _, file := range spec.View.Shared {
			if by := readers[file]; by == "" || by == spec.Name {
				t.Errorf("%s, which %s shares, is nobody's own", file, spec.Name)
			}
		}
	}
}
