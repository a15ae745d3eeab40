// SPDX-License-Identifier: Apache-2.0

package session

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/account"
	"muster.dev/muster/internal/plane/clusterconfig"
	"muster.dev/muster/internal/plane/component"
	"muster.dev/muster/internal/platform/programs"
	"muster.dev/muster/internal/platform/release"
	"muster.dev/muster/internal/platform/statedir"
)

func wanted() clusterconfig.Config {
	w := clusterconfig.Default(3, v1alpha1.ProviderSimulated)
	w.Cluster.Name, w.Cluster.Namespace, w.Cluster.Spec.Name = "blue", "blue", "blue"
	w.Cluster.Spec.APIServer.Port = 20999
	w.NodeGroups[0].Namespace = "blue"
	w.NodeGroups[0].Spec.Labels = v1alpha1.NodeLabels{"team": "a"}
	w.NodeGroups[0].Spec.Taints = v1alpha1.NodeTaints{{Key: "only", Value: "x", Effect: "NoSchedule"}}
	second := w.NodeGroups[0].DeepCopy()
	second.Name, second.Spec.Name = "other", "other"
	second.Spec.ScalingConfig = v1alpha1.ScalingConfig{MinSize: 0, DesiredSize: 0, MaxSize: 7}
	w.NodeGroups = append(w.NodeGroups, second)
	w.DefaultMax = nil // what is saved says it
	return w
}

func TestSessionSaves(t *testing.T) {
	dir := statedir.Dir(t.TempDir())
	s := Session{State: dir, Wanted: wanted()}
	if made, err := s.save(t.Context(), &Outcome{}); err != nil || !made {
		t.Fatalf("first: %v, %v", made, err)
	}
	if !dir.Exists() {
		t.Error("a directory with a cluster has no layout version")
	}
	record := s.Cluster().Record()
	before, err := os.ReadFile(record)
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		change   func(*clusterconfig.Config)
		explicit bool
		made     bool
		refused  string
	}{
		"nothing asked for": {change: func(*clusterconfig.Config) {}},
		// What is there already is changed in the management plane, and the service changes the record.
		"the same":                {change: func(*clusterconfig.Config) {}, explicit: true},
		"other node groups":       {change: func(c *clusterconfig.Config) { c.NodeGroups = nil }, explicit: true},
		"another port, and so on": {change: func(c *clusterconfig.Config) { c.Cluster.Spec.APIServer.Port = 21000 }, explicit: true},
		"another cluster":         {change: func(c *clusterconfig.Config) { c.Cluster.Spec.Name, c.Cluster.Name = "red", "red" }, explicit: true, made: true},
		"another network":         {change: func(c *clusterconfig.Config) { c.Cluster.Spec.Network.PodCIDR = "10.0.0.0/16" }, explicit: true, refused: "cannot be changed"},
	} {
		t.Run(name, func(t *testing.T) {
			s := Session{State: dir, Wanted: wanted(), Explicit: test.explicit}
			test.change(&s.Wanted)
			made, err := s.save(t.Context(), &Outcome{})
			if test.refused != "" {
				says(t, err, test.refused)
			} else if err != nil {
				t.Fatal(err)
			}
			if after, err := os.ReadFile(record); err != nil || made != test.made || string(after) != string(before) {
				t.Errorf("made is %v, %v, and the file\n%s", made, err, after)
			}
		})
	}
}

// plan asks a copy of the test binary, beside which the programs are.
func plan(t *testing.T, dir statedir.Dir, beside []string) ([]component.Spec, string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	bin, err := os.MkdirTemp(filepath.Dir(self), "bin") //nolint:usetesting // a link to it can be made only on the same disk
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(bin) })
	if err := os.Link(self, filepath.Join(bin, "muster")); err != nil {
		t.Fatal(err)
	}
	for _, name := range beside {
		write(t, filepath.Join(bin, name), "")
	}
	cmd := exec.CommandContext(t.Context(), filepath.Join(bin, "muster"))
	cmd.Dir, cmd.Env = string(dir), append(os.Environ(), envPlan+"=1")
	out, err := cmd.Output()
	if err != nil {
		return nil, string(out)
	}
	var specs []component.Spec
	if err := json.Unmarshal(out, &specs); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if got := filepath.Dir(specs[0].Path); got != bin {
		t.Errorf("programs are looked for in %s, not in %s", got, bin)
	}
	return specs, ""
}

func TestPlan(t *testing.T) {
	dir := statedir.Dir(t.TempDir())
	all := append(programs.Plane(), programs.Machine()...)
	specs, problem := plan(t, dir, all)
	if problem != "" {
		t.Fatal(problem)
	}
	text := func(specs []component.Spec) string {
		raw, err := json.Marshal(specs)
		if err != nil {
			t.Fatal(err)
		}
		return string(raw)
	}
	if got := text(specs); !strings.Contains(got, "--listen=127.0.0.1:20999") || !strings.Contains(got, "--listen-client-urls=https://127.0.0.1:0") {
		t.Errorf("without ports yet: %s", got)
	}
	for _, path := range []string{dir.Account(), dir.Ports(), dir.Layout(), dir.Components(), dir.Clusters()} {
		if _, err := os.Stat(path); err == nil {
			t.Errorf("a plan made %s", path)
		}
	}
	if _, err := account.Make(dir, "eu-west-1"); err != nil {
		t.Fatal(err)
	}
	ports := dir.Cluster(clusterconfig.DefaultClusterName).Ports()
	write(t, ports, `{"etcd": 20001, "apiServer": 20003}`)
	specs, problem = plan(t, dir, all)
	if got := text(specs); problem != "" || !strings.Contains(got, "--listen-client-urls=https://127.0.0.1:20001") || strings.Contains(got, ":20003") {
		t.Errorf("with ports: %s%s", got, problem)
	}
	write(t, ports, `{`)
	if _, problem = plan(t, dir, all); !strings.Contains(problem, "ports.json is damaged") {
		t.Errorf("with damaged ports: %q", problem)
	}
	if _, problem = plan(t, dir, all[2:]); !strings.Contains(problem, "lacks etcd, "+release.Default().Program("", "generic-apiserver")+": run `make build`") {
		t.Errorf("without programs: %q", problem)
	}
}

func TestLastLine(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	if got := lastLine(path); got != "it wrote no log" {
		t.Errorf("no log: %q", got)
	}
	for content, want := range map[string]string{
		"one":                            "one",
		"one\ntwo\n\n":                   "two",
		"one\nError: the port is in use": "the port is in use",
	} {
		write(t, path, content)
		if got := lastLine(path); got != want {
			t.Errorf("lastLine of %q is %q, want %q", content, got, want)
		}
	}
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
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
