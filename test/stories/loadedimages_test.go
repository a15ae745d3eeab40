// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// greeting is a program for an image of nothing else. It says which build it is.
const greeting = `package main

import (
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

var build string

func main() {
	fmt.Println("build", build)
	end := make(chan os.Signal, 1)
	signal.Notify(end, syscall.SIGTERM)
	<-end
}
`

// hostPlatform begins the configuration of an image for this host.
const hostPlatform = `"architecture":"` + runtime.GOARCH + `","os":"linux",`

// savedImage writes what docker save writes of an image with one program, whose configuration begins with what is given
// of its platform.
func savedImage(t *testing.T, name, build, platform string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "main.go"), []byte(greeting), 0o600); err != nil {
		t.Fatal(err)
	}
	compile := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-ldflags", "-s -w -X main.build="+build, "-o", "greet", "main.go")
	compile.Dir, compile.Env = dir, append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=", "GOWORK=off")
	if out, err := compile.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	program, err := os.ReadFile(filepath.Join(dir, "greet"))
	if err != nil {
		t.Fatal(err)
	}
	pack := func(files map[string][]byte, mode int64) []byte {
		var out bytes.Buffer
		w := tar.NewWriter(&out)
		for name, content := range files {
			if err := w.WriteHeader(&tar.Header{Name: name, Mode: mode, Size: int64(len(content))}); err != nil {
				t.Fatal(err)
			}
			if _, err := w.Write(content); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		return out.Bytes()
	}
	hash := func(content []byte) string { sum := sha256.Sum256(content); return hex.EncodeToString(sum[:]) }
	layer := pack(map[string][]byte{"greet": program}, 0o755)
	config := fmt.Appendf(nil, `{%s"config":{"Entrypoint":["/greet"]},"rootfs":{"type":"layers","diff_ids":["sha256:%s"]}}`, platform, hash(layer))
	archive := filepath.Join(dir, "image.tar")
	content := pack(map[string][]byte{
		hash(layer) + "/layer.tar": layer, hash(config) + ".json": config,
		"manifest.json": fmt.Appendf(nil, `[{"Config":"%s.json","RepoTags":[%q],"Layers":["%s/layer.tar"]}]`, hash(config), name, hash(layer)),
	}, 0o644)
	if err := os.WriteFile(archive, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return archive
}

// TestImages has machines run images that were loaded, and images of the account's registry.
//
//story:about image/imagestore image/imagearchive node/imageimport node/loadedimages image/registry image/registrystore cloud/ecr iam/registrylogin node/ecrcredential
func TestImages(t *testing.T) {
	t.Parallel()
	i := newInstallation(t)
	i.muster("up", "--nodes", "2")
	t.Run("loaded", func(t *testing.T) { loadedImages(t, i.in(t)) })
	t.Run("pushed to the registry", func(t *testing.T) { registryOfTheAccount(t, i.in(t)) })
}

// An image that was loaded runs on the machines that there are and on one that comes later, without a registry; a
// second load under the same name replaces it, and it is gone after its removal, while its container goes on.
func loadedImages(t *testing.T, i *installation) {
	first := savedImage(t, "greet:dev", "one", hostPlatform)
	second := savedImage(t, "greet:dev", "two", "") // as crane makes it of an empty base
	out, machines := i.muster("image", "load", first)
	if !strings.HasPrefix(out, "image docker.io/library/greet:dev loaded: sha256:") || !strings.Contains(machines, "2 machines are up to date") {
		t.Errorf("muster image load: %s%s", out, machines)
	}
	i.muster("scale", "nodegroup", "default", "3", "--wait")
	i.ready()
	run := func(pod, node, policy string) {
		t.Helper()
		i.apply(fmt.Sprintf("apiVersion: v1\nkind: Pod\nmetadata: {name: %s}\nspec:\n  nodeName: %s\n  terminationGracePeriodSeconds: 1\n"+
			"  containers: [{name: greet, image: 'greet:dev', imagePullPolicy: %s}]\n", pod, node, policy))
	}
	nodes := strings.Fields(i.mustKubectl("get", "nodes", "-o", "jsonpath={.items[*].metadata.name}"))
	if len(nodes) != 3 {
		t.Fatalf("nodes %q", nodes)
	}
	for n, node := range nodes { // a node among them came later
		run(fmt.Sprint("first-", n), node, "Never")
	}
	says := func(pod, want string) {
		t.Helper()
		i.eventually(pod+" says "+want, func() error {
			if got, err := i.kubectl("logs", pod); err != nil || !strings.Contains(got, want) {
				return fmt.Errorf("%s %w", got, err)
			}
			return nil
		})
	}
	for n := range nodes {
		says(fmt.Sprint("first-", n), "build one")
	}

	// A kubelet that asks containerd after a restart of it finds the image, too.
	machine := i.mustKubectl("get", "node", nodes[0], "-o", "jsonpath={.spec.providerID}")
	machine = machine[strings.LastIndex(machine, "/")+1:]
	i.muster("exec", machine, "--", "sh", "-c", "kill -9 $(pidof containerd)")
	i.muster("image", "load", second)
	i.eventually("a pod runs on the machine whose containerd was killed", func() error {
		_, err := i.kubectl("get", "--raw", "/api/v1/nodes/"+nodes[0]+"/proxy/healthz")
		return err
	})
	run("second", nodes[0], "IfNotPresent")
	says("second", "build two")

	before := i.mustKubectl("get", "pods", "-o", "jsonpath={.items[*].status.containerStatuses[*].restartCount}")
	i.muster("image", "rm", "greet:dev")
	if out, _ := i.muster("image", "ls", "-o", "json"); strings.TrimSpace(out) != "[]" {
		t.Errorf("muster image ls: %s", out)
	}
	if out, _ := i.muster("exec", machine, "--", "ctr", "-n", "k8s.io", "images", "ls", "-q"); strings.Contains(out, "greet:dev") || !strings.Contains(out, "muster.dev/pause") {
		t.Errorf("images of the machine:\n%s", out)
	}
	run("third", nodes[1], "Never")
	i.eventually("there is no image for a third pod", func() error {
		reason, err := i.kubectl("get", "pod", "third", "-o", "jsonpath={.status.containerStatuses[0].state.waiting.reason}")
		if err != nil || reason != "ErrImageNeverPull" {
			return fmt.Errorf("%q %w", reason, err)
		}
		return nil
	})
	run("fourth", nodes[1], "IfNotPresent")
	i.eventually("a pod says that its image was not loaded, with the command", func() error {
		said, err := i.kubectl("get", "events", "--field-selector", "reason=ImageNotLoaded,involvedObject.name=fourth", "-o", "jsonpath={.items[*].message}")
		if err != nil || !strings.HasPrefix(said, "image greet:dev is not loaded (M-POD-81), and ") || !strings.HasSuffix(said, "docker save greet:dev | muster image load -") {
			return fmt.Errorf("%q %w", said, err)
		}
		return nil
	})
	if after := i.mustKubectl("get", "pods", "-l", "!none", "-o", "jsonpath={.items[*].status.containerStatuses[*].restartCount}"); !strings.HasPrefix(after, before) {
		t.Errorf("containers were restarted: %s, before %s", after, before)
	}
	if _, _, err := i.try("image", "rm", "greet:dev"); err == nil {
		t.Error("an image is removed twice")
	}
	i.mustKubectl("delete", "pods", "--all", "--wait=false")
}
