// SPDX-License-Identifier: Apache-2.0

package stateconversion

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"errors"
	"io/fs"
	randv2 "math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"muster.dev/muster/internal/network/clusternetwork"
	"muster.dev/muster/internal/network/clusternetwork/clusternetworktest"
	"muster.dev/muster/internal/plane/component"
	"muster.dev/muster/internal/plane/tokenkeys"
	"muster.dev/muster/internal/platform/statedir"
)

// envDir makes the test binary convert a state directory.
const envDir = "MUSTER_TEST_CONVERT"

func TestMain(m *testing.M) {
	dir := os.Getenv(envDir)
	if dir == "" {
		m.Run()
		return
	}
	if err := Of(statedir.Dir(dir)).Run(silent); err != nil {
		panic(err)
	}
}

const associations = `{"identities":[{"namespace":"a","serviceAccount":"b"}]}`

// earlier makes the state directory of two clusters, as a Muster of layout 4 kept it: the service has the keys of tokens
// and the file of associations, and the networks have no security groups. Beside them is what is left of two others.
func earlier(t *testing.T) (statedir.Dir, map[string]tokenkeys.Ring) {
	t.Helper()
	dir := statedir.Dir(t.TempDir())
	put(t, dir.Layout(), "4\n")
	put(t, dir.Account(), "{}")
	network, err := json.Marshal(clusternetworktest.Network())
	if err != nil {
		t.Fatal(err)
	}
	rings := map[string]tokenkeys.Ring{}
	for _, name := range []string{"blue", "red", "asked", "gone"} {
		c := component.Config{Dir: dir.Cluster(name)}
		put(t, c.Dir.Network(), string(network))
		put(t, filepath.Join(c.Dir.Etcd(), "member"), "")
		put(t, c.PodAssociationsBefore(), associations)
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		ring, err := tokenkeys.Of(time.Now(), key)
		if err != nil {
			t.Fatal(err)
		}
		put(t, c.TokenKeysBefore(), "")
		if err := tokenkeys.Write(c.TokenKeysBefore(), ring); err != nil {
			t.Fatal(err)
		}
		if name != "asked" {
			put(t, c.Dir.Record(), name)
		}
		rings[name] = ring
	}
	put(t, dir.Cluster("gone").Deleting(), "")
	return dir, rings
}

// isConverted fails unless the clusters have what this Muster reads, and what is left of others is as it was.
func isConverted(t *testing.T, dir statedir.Dir, rings map[string]tokenkeys.Ring) {
	t.Helper()
	for _, name := range []string{"blue", "red"} {
		c := component.Config{Dir: dir.Cluster(name)}
		ring, err := tokenkeys.Read(filepath.Join(c.Dir.TokenSigner(), filepath.Base(c.TokenKeysBefore())))
		if err != nil || ring.Last().ID != rings[name].Last().ID {
			t.Errorf("cluster %s has the keys %+v, %v", name, ring, err)
		}
		if known, err := tokenkeys.ReadPublic(c.Dir.TokenKeys()); err != nil || known.Last().ID != rings[name].Last().ID {
			t.Errorf("cluster %s: the account knows %+v, %v", name, known, err)
		}
		if raw, err := os.ReadFile(c.PodAssociations()); err != nil || string(raw) != associations {
			t.Errorf("cluster %s has the associations %s, %v", name, raw, err)
		}
		var n clusternetwork.Network
		raw, err := os.ReadFile(c.Dir.Network())
		if err == nil {
			err = json.Unmarshal(raw, &n)
		}
		if err != nil || !strings.HasPrefix(n.SecurityGroupID, "sg-") {
			t.Errorf("cluster %s has the network %+v, %v", name, n, err)
		}
		if _, err := os.Stat(savedIn(dir, "layout-4/clusters/"+name+"/network.json")); err != nil {
			t.Error(err)
		}
	}
	for _, name := range []string{"asked", "gone"} {
		if _, err := os.Stat(dir.Cluster(name).TokenSigner()); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("cluster %s was converted: %v", name, err)
		}
	}
	if is, err := look(dir); err != nil || is.layout != oldest+len(Steps()) {
		t.Errorf("%+v, %v", is, err)
	}
}

// TestKilled kills a process that converts, at any moment, again and again until one has ended.
func TestKilled(t *testing.T) {
	t.Parallel()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := randv2.New(randv2.NewPCG(seed, 0))
	killed, carriedOn := 0, 0
	for range 15 {
		dir, rings := earlier(t)
		for limit := 100 * time.Millisecond; ; limit += limit / 4 { // a busy host is slow to start it
			cmd := exec.Command("/proc/self/exe")
			cmd.Env = append(os.Environ(), envDir+"="+string(dir))
			var said strings.Builder
			cmd.Stdout, cmd.Stderr = &said, &said
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			timer := time.AfterFunc(time.Duration(random.Int64N(int64(limit))), func() { _ = cmd.Process.Kill() })
			err := cmd.Wait()
			timer.Stop()
			if err == nil {
				break
			}
			if cmd.ProcessState.Exited() {
				t.Fatalf("it was not killed, and ended: %v\n%s", err, said.String())
			}
			killed++
			if is, err := look(dir); err != nil {
				t.Fatal(err)
			} else if is.layout > oldest || is.by.Release != "" {
				carriedOn++
			}
			if _, err := Of(dir).Check(); err != nil {
				t.Fatal(err)
			}
		}
		isConverted(t, dir, rings)
	}
	t.Logf("killed %d times, %d of them with something converted", killed, carriedOn)
}

// A record that cannot be read is told, of all clusters, and nothing is converted.
func TestDamaged(t *testing.T) {
	dir, rings := earlier(t)
	blue, red := component.Config{Dir: dir.Cluster("blue")}, component.Config{Dir: dir.Cluster("red")}
	was, err := os.ReadFile(blue.Dir.Network())
	if err != nil {
		t.Fatal(err)
	}
	put(t, blue.Dir.Network(), "{")
	put(t, red.TokenKeysBefore(), "{")
	err = Of(dir).Run(silent)
	if err == nil || strings.Contains(err.Error(), "\n") {
		t.Fatal(err)
	}
	for _, want := range []string{"cluster blue: reading the network of the cluster", "cluster red: ", red.TokenKeysBefore()} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not say %s", err, want)
		}
	}
	if is, err := look(dir); err != nil || is != (found{layout: 4}) {
		t.Errorf("%+v, %v", is, err)
	}
	put(t, blue.Dir.Network(), string(was))
	if err := tokenkeys.Write(red.TokenKeysBefore(), rings["red"]); err != nil {
		t.Fatal(err)
	}
	if err := Of(dir).Run(silent); err != nil {
		t.Fatal(err)
	}
	isConverted(t, dir, rings)
}

// A kubeconfig has a key and is not saved; nor is what lies in directories.
func TestSavedRecords(t *testing.T) {
	dir := statedir.Dir(t.TempDir())
	blue := dir.Cluster("blue")
	for _, path := range []string{dir.Layout(), dir.Ports(), dir.Registries(), blue.Record(), blue.PlaneRecord()} {
		put(t, path, path)
	}
	for _, path := range []string{blue.Kubeconfig(), dir.Lock(), dir.SessionKeys(), filepath.Join(blue.PKI(), "service-account", "keys.json")} {
		put(t, path, "not to be saved")
	}
	to := savedIn(dir, "v0.1.9-layout-4")
	put(t, filepath.Join(to, "of-an-earlier-attempt.json"), "")
	put(t, filepath.Join(filepath.Dir(to), ".new-v0.1.9-layout-4", "cut-short.json"), "")
	if err := save(dir, to); err != nil {
		t.Fatal(err)
	}
	got := files(t, to)
	for _, path := range []string{dir.Layout(), dir.Ports(), dir.Registries(), blue.Record(), blue.PlaneRecord()} {
		name, _ := filepath.Rel(string(dir), path)
		if got[name] != path {
			t.Errorf("%s has %q", name, got[name])
		}
		if info, err := os.Stat(filepath.Join(to, name)); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%v, %v", info, err)
		}
		delete(got, name)
	}
	if len(got) > 0 {
		t.Errorf("more is saved: %v", got)
	}
	if info, err := os.Stat(to); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%v, %v", info, err)
	}
	if all := files(t, filepath.Dir(to)); len(all) != 5 {
		t.Errorf("there is %v", all)
	}
}
