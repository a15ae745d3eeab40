// SPDX-License-Identifier: Apache-2.0

package kubeconfig_test

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"muster.dev/muster/internal/platform/kubeconfig"
)

const stateDir = "/var/lib/muster"

// foreign is somebody else's kubeconfig: with a comment, a path relative to it, and extensions of another program.
const foreign = `# kept by hand
apiVersion: v1
clusters:
- cluster:
    certificate-authority: ca.pem
    extensions:
    - extension:
        provider: minikube.sigs.k8s.io
      name: cluster_info
    server: https://work.example:6443
  name: work
contexts:
- context:
    cluster: work
    namespace: team
    user: alice
  name: work
current-context: work
kind: Config
users:
- name: alice
  user:
    client-certificate: alice.crt
    client-key: alice.key
`

type world struct {
	*testing.T
	home  string
	files []string // the kubeconfigs of the cluster and its management plane
}

// newWorld makes a home, and kubeconfigs to merge.
func newWorld(t *testing.T) world {
	t.Helper()
	w := world{T: t, home: t.TempDir()}
	t.Setenv("HOME", w.home)
	t.Setenv("KUBECONFIG", "")
	// clientcmd looks at $HOME once, when the program starts; without this the tests would write to the kubeconfig of
	// the user that runs them.
	before := clientcmd.RecommendedHomeFile
	clientcmd.RecommendedHomeFile = filepath.Join(w.home, ".kube", "config")
	t.Cleanup(func() { clientcmd.RecommendedHomeFile = before })
	if got := kubeconfig.Options("").GetDefaultFilename(); !strings.HasPrefix(got, w.home) {
		t.Fatalf("the default kubeconfig is the real one, %s", got)
	}
	w.files = w.made("secret")
	return w
}

// made are kubeconfigs as the service writes them.
func (w world) made(key string) []string {
	w.Helper()
	var files []string
	dir := w.TempDir()
	for _, name := range []string{"muster", "muster-management"} {
		config := clientcmdapi.NewConfig()
		config.Clusters[name] = &clientcmdapi.Cluster{Server: "https://127.0.0.1:20000/" + name, CertificateAuthorityData: []byte("ca")}
		config.AuthInfos[name] = &clientcmdapi.AuthInfo{ClientCertificateData: []byte("cert"), ClientKeyData: []byte(key)}
		config.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
		config.CurrentContext = name
		path := filepath.Join(dir, name+".yaml")
		if err := clientcmd.WriteToFile(*config, path); err != nil {
			w.Fatal(err)
		}
		files = append(files, path)
	}
	return files
}

func (w world) write(name, content string) string {
	w.Helper()
	path := filepath.Join(w.home, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		w.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		w.Fatal(err)
	}
	return path
}

func (w world) read(path string) string {
	w.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		w.Fatal(err)
	}
	return string(raw)
}

func (w world) load(path string) *clientcmdapi.Config {
	w.Helper()
	config, err := clientcmd.LoadFromFile(path)
	if err != nil {
		w.Fatal(err)
	}
	return config
}

func (w world) merge(explicit string, switchTo bool, wantPath string, wantChanged bool) {
	w.Helper()
	path, changed, err := kubeconfig.Merge(kubeconfig.Options(explicit), stateDir, w.files, switchTo)
	if err != nil || path != wantPath || changed != wantChanged {
		w.Fatalf("Merge = %s, %v, %v; want %s, %v", path, changed, err, wantPath, wantChanged)
	}
	if info, err := os.Stat(wantPath); err != nil || info.Mode() != 0o600 {
		w.Errorf("%s: %v, %v; want mode 0600", wantPath, info.Mode(), err)
	}
}

func names[T any](m map[string]T) string { return strings.Join(slices.Sorted(maps.Keys(m)), " ") }

func (w world) holds(path, want, current string) {
	w.Helper()
	config := w.load(path)
	if got := names(config.Contexts); got != want || config.CurrentContext != current {
		w.Errorf("%s has contexts %q, current %q; want %q, %q", path, got, config.CurrentContext, want, current)
	}
	for name, context := range config.Contexts {
		if config.Clusters[context.Cluster] == nil || config.AuthInfos[context.AuthInfo] == nil {
			w.Errorf("%s: context %s lacks its cluster or user", path, name)
		}
	}
}

func TestMergeIntoNothing(t *testing.T) {
	for name, explicit := range map[string]string{"default": "", "explicit": "sub/team.yaml"} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			before := []string{w.read(w.files[0]), w.read(w.files[1])}
			path := filepath.Join(w.home, ".kube", "config")
			if explicit != "" {
				explicit = filepath.Join(w.home, explicit)
				path = explicit
			}
			w.merge(explicit, false, path, true)
			w.holds(path, "muster muster-management", "muster")
			once := w.read(path)
			w.merge(explicit, true, path, false)
			if w.read(path) != once {
				t.Error("the second time something changed")
			}
			// client-go notes where an entry comes from, and would write it back there.
			if diff := cmp.Diff(before, []string{w.read(w.files[0]), w.read(w.files[1])}); diff != "" {
				t.Errorf("the merged files changed:\n%s", diff)
			}
		})
	}
}

func TestMergeIntoEmptyFile(t *testing.T) {
	w := newWorld(t)
	path := w.write("empty", "")
	w.merge(path, false, path, true)
	w.holds(path, "muster muster-management", "muster")
}

func TestMergeKeepsWhatIsThere(t *testing.T) {
	w := newWorld(t)
	path := w.write(".kube/config", foreign)
	before := w.load(path)
	w.merge("", false, path, true)
	w.holds(path, "muster muster-management work", "work")
	after := w.load(path)
	for what, diff := range map[string]string{
		"context": cmp.Diff(before.Contexts["work"], after.Contexts["work"]),
		"cluster": cmp.Diff(before.Clusters["work"], after.Clusters["work"]),
		"user":    cmp.Diff(before.AuthInfos["alice"], after.AuthInfos["alice"]),
	} {
		if diff != "" {
			t.Errorf("%s of another cluster changed:\n%s", what, diff)
		}
	}
	w.merge("", true, path, true)
	w.holds(path, "muster muster-management work", "muster")
}

func TestMergeBringsUpToDate(t *testing.T) {
	w := newWorld(t)
	path := w.write(".kube/config", foreign)
	w.merge("", false, path, true)
	w.files = w.made("renewed")
	w.merge("", false, path, true)
	w.merge("", false, path, false)
	if got := string(w.load(path).AuthInfos["muster"].ClientKeyData); got != "renewed" {
		t.Errorf("the key is %q", got)
	}
}

func TestForeignEntriesAreRefused(t *testing.T) {
	for name, replace := range map[string]string{
		`context "muster"`: "  name: work\ncurrent", // the context's own name
		`cluster "muster"`: "  name: work\ncontexts",
		`user "muster"`:    "- name: alice",
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			content := strings.Replace(foreign, replace, strings.NewReplacer("work", "muster", "alice", "muster").Replace(replace), 1)
			path := w.write(".kube/config", content)
			_, changed, err := kubeconfig.Merge(kubeconfig.Options(""), stateDir, w.files, true)
			if !errors.Is(err, kubeconfig.ErrForeign) || !strings.Contains(err.Error(), name) || changed {
				t.Errorf("Merge = %v, %v", changed, err)
			}
			if w.read(path) != content {
				t.Error("the file changed")
			}
		})
	}
	t.Run("another state directory", func(t *testing.T) {
		w := newWorld(t)
		path := filepath.Join(w.home, ".kube", "config")
		w.merge("", false, path, true)
		before := w.read(path)
		if _, _, err := kubeconfig.Merge(kubeconfig.Options(""), "/other", w.files, false); !errors.Is(err, kubeconfig.ErrForeign) {
			t.Errorf("Merge: %v", err)
		}
		if _, changed, err := kubeconfig.Remove(kubeconfig.Options(""), "/other"); err != nil || changed {
			t.Errorf("Remove = %v, %v", changed, err)
		}
		if w.read(path) != before {
			t.Error("the file changed")
		}
	})
}

func TestUnreadable(t *testing.T) {
	w := newWorld(t)
	path := w.write("bad", "clusters: {")
	if _, _, err := kubeconfig.Merge(kubeconfig.Options(path), stateDir, w.files, true); err == nil || !strings.Contains(err.Error(), "reading kubeconfig") {
		t.Errorf("Merge: %v", err)
	}
	if _, _, err := kubeconfig.Remove(kubeconfig.Options(path), stateDir); err == nil {
		t.Error("Remove: no error")
	}
	if w.read(path) != "clusters: {" {
		t.Error("the file changed")
	}
	for name, content := range map[string]string{
		"nothing there": "", "no cluster": "contexts: [{name: x, context: {cluster: none, user: none}}]",
	} {
		file := filepath.Join(w.home, "source")
		if content != "" {
			w.write("source", content)
		}
		if _, _, err := kubeconfig.Merge(kubeconfig.Options(filepath.Join(w.home, "new")), stateDir, []string{file}, true); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestRemove(t *testing.T) {
	w := newWorld(t)
	if _, changed, err := kubeconfig.Remove(kubeconfig.Options(""), stateDir); err != nil || changed {
		t.Errorf("from nothing: %v, %v", changed, err)
	}
	if _, err := os.Stat(filepath.Join(w.home, ".kube", "config")); err == nil {
		t.Error("Remove made a file")
	}
	path := w.write(".kube/config", foreign)
	w.merge("", true, path, true)
	got, changed, err := kubeconfig.Remove(kubeconfig.Options(""), stateDir)
	if err != nil || !changed || got != path {
		t.Errorf("Remove = %s, %v, %v", got, changed, err)
	}
	w.holds(path, "work", "work")
	config := w.load(path)
	if names(config.Clusters) != "work" || names(config.AuthInfos) != "alice" {
		t.Errorf("left are clusters %q and users %q", names(config.Clusters), names(config.AuthInfos))
	}
	if _, changed, err := kubeconfig.Remove(kubeconfig.Options(""), stateDir); err != nil || changed {
		t.Errorf("again: %v, %v", changed, err)
	}
}

// People may make their own contexts for our cluster. They go with it, but not the user they name.
func TestRemoveKeepsUsersOfOthers(t *testing.T) {
	w := newWorld(t)
	path := w.write(".kube/config", foreign)
	w.merge("", false, path, true)
	config := w.load(path)
	config.Contexts["alice@muster"] = &clientcmdapi.Context{Cluster: "muster", AuthInfo: "alice"}
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		t.Fatal(err)
	}
	if _, _, err := kubeconfig.Remove(kubeconfig.Options(""), stateDir); err != nil {
		t.Fatal(err)
	}
	w.holds(path, "work", "work")
}

func TestSeveralFiles(t *testing.T) {
	w := newWorld(t)
	first, second, third := w.write("first", foreign), filepath.Join(w.home, "second"), filepath.Join(w.home, "third")
	t.Setenv("KUBECONFIG", strings.Join([]string{third, first, second}, string(os.PathListSeparator)))
	w.merge("", true, first, true) // as kubectl: the first that is there
	w.holds(first, "muster muster-management work", "muster")
	for _, path := range []string{second, third} {
		if _, err := os.Stat(path); err == nil {
			t.Errorf("%s was made", path)
		}
	}

	// Contexts stay in the file that they are in, whichever is the first that is there.
	w.write("third", "")
	w.files = w.made("renewed")
	w.merge("", true, first, true)
	if got := string(w.load(first).AuthInfos["muster"].ClientKeyData); got != "renewed" {
		t.Errorf("the key is %q", got)
	}
	if config := w.load(third); len(config.Contexts)+len(config.AuthInfos)+len(config.Clusters) != 0 {
		t.Errorf("third has %q", w.read(third))
	}

	if _, changed, err := kubeconfig.Remove(kubeconfig.Options(""), stateDir); err != nil || !changed {
		t.Errorf("Remove = %v, %v", changed, err)
	}
	if got := names(w.load(first).Contexts); got != "work" {
		t.Errorf("first has %q", got)
	}
}

func TestExplicitWins(t *testing.T) {
	w := newWorld(t)
	other := w.write("other", foreign)
	t.Setenv("KUBECONFIG", other)
	path := filepath.Join(w.home, "explicit")
	w.merge(path, true, path, true)
	if w.read(other) != foreign {
		t.Error("$KUBECONFIG was changed")
	}
}

// The contexts of one cluster go, under whatever name. Contexts of another cluster of the state directory stay, and so
// do contexts of another directory.
func TestRemoveCluster(t *testing.T) {
	for name, test := range map[string]struct{ cluster, server, left, current string }{
		"by name":            {"muster", "", "muster-management work", "work"},
		"by server":          {"gone", "https://127.0.0.1:20000/muster", "muster-management work", "work"},
		"another one":        {"muster-management", "", "muster work", "muster"},
		"one that is not":    {"mus", "", "muster muster-management work", "muster"},
		"somebody else's":    {"work", "https://work.example:6443", "muster muster-management work", "muster"},
		"no name, no server": {"", "", "muster muster-management work", "muster"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			path := w.write(".kube/config", foreign)
			w.merge("", true, path, true)
			_, changed, err := kubeconfig.RemoveCluster(kubeconfig.Options(""), stateDir, test.cluster, test.server)
			if want := test.left != "muster muster-management work"; err != nil || changed != want {
				t.Errorf("RemoveCluster = %v, %v; want %v", changed, err, want)
			}
			w.holds(path, test.left, test.current)
		})
	}
}

// With a cluster its context goes, and the current one is that of before again: over several clusters, and never one
// that is gone.
func TestTheContextOfBefore(t *testing.T) {
	w := newWorld(t)
	path := w.write(".kube/config", foreign)
	add := func(name string) {
		t.Helper()
		file := filepath.Join(t.TempDir(), name)
		config := clientcmdapi.NewConfig()
		config.Clusters[name] = &clientcmdapi.Cluster{Server: "https://127.0.0.1:1/" + name}
		config.AuthInfos[name] = &clientcmdapi.AuthInfo{Token: "x"}
		config.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
		if err := clientcmd.WriteToFile(*config, file); err != nil {
			t.Fatal(err)
		}
		for range 2 { // the second time it is brought up to date
			if _, _, err := kubeconfig.Merge(kubeconfig.Options(""), stateDir, []string{file}, true); err != nil {
				t.Fatal(err)
			}
		}
	}
	remove := func(name, want, current string) {
		t.Helper()
		if _, _, err := kubeconfig.RemoveCluster(kubeconfig.Options(""), stateDir, name, ""); err != nil {
			t.Fatal(err)
		}
		w.holds(path, want, current)
	}
	add("red")
	add("green")
	add("blue")
	remove("green", "blue red work", "blue")
	remove("blue", "red work", "red")
	remove("red", "work", "work")

	add("red")
	add("blue")
	add("red") // there and back
	remove("red", "blue work", "blue")
	remove("blue", "work", "work")

	add("red")
	add("green")
	if _, _, err := kubeconfig.Remove(kubeconfig.Options(""), stateDir); err != nil {
		t.Fatal(err)
	}
	w.holds(path, "work", "work")
}
