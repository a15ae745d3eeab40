// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// bootStep is something that a machine does when it boots: seen when it has come to that, and past when it goes on.
type bootStep struct {
	name       string
	seen, past func(boot) bool
}

// boot is a machine as it is seen from outside: its disk, and what its agent and its kubelet have logged since it was
// booted.
type boot struct{ disk, log, kubelet string }

func logged(text string) func(boot) bool {
	return func(b boot) bool { return strings.Contains(b.log, text) }
}

func onDisk(path, text string) func(boot) bool {
	return func(b boot) bool {
		content, err := os.ReadFile(b.at(path))
		return err == nil && strings.Contains(string(content), text)
	}
}

func (b boot) at(path string) string { return filepath.Join(b.disk, path) }

func there(pattern string) func(boot) bool {
	return func(b boot) bool {
		found, err := filepath.Glob(b.at(pattern)) // the links too that only the machine can follow
		return err == nil && len(found) > 0
	}
}

func either(conditions ...func(boot) bool) func(boot) bool {
	return func(b boot) bool {
		return slices.ContainsFunc(conditions, func(is func(boot) bool) bool { return is(b) })
	}
}

func always(boot) bool { return true }

func never(boot) bool { return false }

// Signs of a boot that are seen from outside, in their order.
var (
	boots             = logged(`msg="machine boots"`)
	scriptsOnRecord   = there("var/lib/muster/scripts-i-*")
	scriptRuns        = onDisk("var/lib/scripts-ran", "one begins")
	scriptRan         = logged(`msg="script of the user data ran" script="user data, part 1"`)
	otherScriptRan    = logged(`msg="script of the user data ran" script="user data, part 2"`)
	firstFile         = there("etc/containerd/cni.conflist.template")
	containerdStarts  = logged(`msg="program started" program=containerd`)
	containerdAnswers = logged(`msg="containerd answers"`)
	imageImported     = logged(`msg="image imported" archive=pause.tar`)
	serverAnswers     = logged(`msg="API server answers"`)
	kubeletStarts     = logged(`msg="program started" program=kubelet`)
	asked             = func(b boot) bool { return strings.Contains(b.kubelet, "Certificate signing request created") }
	certificateIssued = there("var/lib/kubelet/pki/kubelet-client-current.pem")
	joined            = logged(`msg="kubelet has its credential"`)
	servingIssued     = there("var/lib/kubelet/pki/kubelet-server-current.pem")
)

// The steps at which the agent is killed. A step that a machine does once in its life is hit once.
var (
	atRoot        = bootStep{"its root is built", always, boots}
	atBoot        = bootStep{"it asks what it is told", boots, scriptRan}
	atScript      = bootStep{"a script runs", scriptRuns, scriptRan}
	atOtherScript = bootStep{"another script runs", scriptRan, otherScriptRan}
	atFiles       = bootStep{"its files are written", firstFile, containerdStarts}
	atContainerd  = bootStep{"containerd starts", containerdStarts, containerdAnswers}
	atImages      = bootStep{"images are imported", containerdAnswers, imageImported}
	atMoreImages  = bootStep{"the first image is imported", imageImported, kubeletStarts}
	atServer      = bootStep{"the API server answers", serverAnswers, kubeletStarts}
	atKubelet     = bootStep{"the kubelet starts", kubeletStarts, either(asked, certificateIssued, servingIssued)}
	atRequest     = bootStep{"a certificate is asked for", asked, certificateIssued}
	atCertificate = bootStep{"the certificate is there", certificateIssued, joined}
	atJoined      = bootStep{"it has joined", joined, servingIssued}
	atServing     = bootStep{"the serving certificate is there", servingIssued, never}
)

// killedAtEachStep kills the agents of machines, which are number one of their processes, from outside: at each step of
// a boot, and at moments that are drawn. A machine that is killed boots again by itself and goes on to the next step of
// its round, and in the end is the node that it would have been.
func killedAtEachStep(t *testing.T, i *installation) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	var claims sync.Mutex
	for n, round := range []struct {
		bootstrap string
		steps     []bootStep
	}{
		{"Role", []bootStep{atRoot, atScript, atFiles, atImages, atKubelet}},
		{"Role", []bootStep{atOtherScript, atContainerd, atMoreImages, atServing}},
		{"Token", []bootStep{atServer, atKubelet, atRequest, atJoined}},
		{"Token", []bootStep{atBoot, atCertificate, atServing}},
		{"Token", []bootStep{drawn(random), drawn(random), drawn(random), drawn(random)}},
		{"Role", []bootStep{drawn(random), drawn(random), drawn(random)}},
	} {
		group := fmt.Sprintf("killed-%d", n+1)
		t.Run(group, func(t *testing.T) {
			t.Parallel()
			v := &victim{installation: i.in(t), group: group, bootstrap: round.bootstrap, userData: killedTemplate, claims: &claims}
			v.launch()
			for !v.killedAt(round.steps) {
				v.another()
			}
			v.comesBack()
			v.isWhole()
			v.muster("delete", "nodegroup", group)
		})
	}
}

// drawn is a moment in the time in which a machine boots.
func drawn(random *rand.Rand) bootStep {
	const most = 3 * time.Second
	after := time.Duration(random.Int64N(int64(most)))
	var since time.Time
	return bootStep{fmt.Sprintf("it has run for %s", after.Round(time.Millisecond)), func(boot) bool {
		if since.IsZero() {
			since = time.Now()
		}
		return time.Since(since) >= after
	}, never}
}

// victim is a machine whose agent is killed again and again, with a node group of its own.
type victim struct {
	*installation
	group, bootstrap string
	userData         string      // of its launch template
	claims           *sync.Mutex // held to tell whose machine a new one is

	id, node string
	began    time.Time // of the first of them
	tries    int
	pid      int       // of the boot that was killed last
	killed   time.Time // when that was
	seen     boot      // signs that had been logged by then
	scripts  string    // their output when it was on record that they ran; empty: it is not
}

// killedTemplate is what such a machine does once: scripts that tell where they are. A script that the kill cuts short
// is to be ignored.
const killedTemplate = `MIME-Version: 1.0
Content-Type: multipart/mixed; boundary="=="

--==
Content-Type: text/x-shellscript

#!/bin/sh
echo one begins >>/var/lib/scripts-ran; sleep 0.5; echo one ends >>/var/lib/scripts-ran
--==
Content-Type: text/x-shellscript

#!/bin/sh
echo two begins >>/var/lib/scripts-ran; sleep 0.5; echo two ends >>/var/lib/scripts-ran
--==
Content-Type: application/node.eks.aws

apiVersion: node.muster.dev/v1alpha1
kind: NodeConfig
spec:
  instance:
    userDataFailurePolicy: Ignore
--==--
`

const allScripts = "one begins\none ends\ntwo begins\ntwo ends\n"

func (v *victim) launch() {
	v.t.Helper()
	v.began = time.Now()
	v.claim(func() error {
		path := filepath.Join(v.t.TempDir(), "group.yaml")
		userData, err := json.Marshal(v.userData)
		if err != nil {
			return err
		}
		text := fmt.Sprintf("{apiVersion: muster.dev/v1alpha1, kind: NodeGroup, metadata: {namespace: muster, name: %[1]s}, spec: {name: %[1]s, bootstrap: %[2]s, scalingConfig: {desiredSize: 1}, launchTemplate: {userData: %[3]s}}}", v.group, v.bootstrap, userData)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			return err
		}
		_, err = v.kubectl("apply", "--context=muster-management", "-f", path)
		return err
	})
}

// another replaces the machine by one that has done nothing yet. On a busy machine steps are short beside what it takes
// to see them, so that what counts is that each is hit, and not how many machines that takes.
func (v *victim) another() {
	v.t.Helper()
	if v.tries++; time.Since(v.began) > patience {
		v.t.Fatalf("%d machines were killed too late", v.tries)
	}
	v.claim(func() error {
		out, talk, err := v.try("delete", "machine", v.id)
		if err != nil {
			err = fmt.Errorf("%w: %s%s", err, out, talk)
		}
		return err
	})
}

// claim has a machine launched, and knows it as soon as it is on the disk.
func (v *victim) claim(launch func() error) {
	v.t.Helper()
	v.claims.Lock()
	defer v.claims.Unlock()
	records := func() []string {
		found, _ := filepath.Glob(filepath.Join(v.dir.Machines(), "i-*", "instance.json"))
		return found
	}
	before := records()
	launched := make(chan error, 1)
	go func() { launched <- launch() }()
	var failed error
	v.promptly("a machine is launched", func() bool {
		select {
		case failed = <-launched:
			launched <- failed
		default:
		}
		for _, path := range records() {
			if !slices.Contains(before, path) {
				v.id = filepath.Base(filepath.Dir(path))
				return true
			}
		}
		return failed != nil
	})
	if err := <-launched; err != nil {
		v.t.Fatal(err)
	}
	v.pid, v.killed, v.seen, v.scripts = 0, time.Time{}, boot{}, ""
}

// promptly asks a thousand times a second, as steps are short.
func (v *victim) promptly(what string, done func() bool) {
	v.t.Helper()
	late := time.After(time.Minute)
	for !done() {
		select {
		case <-late:
			v.t.Fatalf("%s %s: not after a minute", v.id, what)
		case <-time.After(time.Millisecond):
		}
	}
}

func (v *victim) disk() string { return filepath.Join(v.dir.Machine(v.id), "root") }

// look is the machine by now.
func (v *victim) look() boot {
	since := func(name, seen string) string {
		log, _ := os.ReadFile(filepath.Join(v.disk(), "var/log", name)) // which comes when it is booted
		return string(log[min(len(seen), len(log)):])
	}
	return boot{disk: v.disk(), log: since("node.log", v.seen.log), kubelet: since("kubelet.log", v.seen.kubelet)}
}

// killedAt kills the agent at each step in turn. It reports whether that was in time: the machine was not past the step
// when it ended.
func (v *victim) killedAt(steps []bootStep) bool {
	v.t.Helper()
	for _, step := range steps {
		pid := v.bootsAgain()
		v.promptly("is where "+step.name, func() bool { return step.seen(v.look()) })
		last := v.kill(pid)
		late := step.past(last)
		v.t.Logf("%s of %s was killed where %s (too late: %v), after its line %s", v.id, v.group, step.name, late, lastLine(last.log))
		if late {
			return false
		}
	}
	return true
}

// kill ends the agent, and so the machine. It returns what was seen of that boot in the end.
func (v *victim) kill(pid int) boot {
	v.t.Helper()
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		v.t.Fatalf("killing the agent of %s: %v", v.id, err)
	}
	v.promptly("ends", func() bool { return errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) })
	last := v.look()
	ran, _ := os.ReadFile(last.at("var/lib/scripts-ran"))
	switch onRecord := scriptsOnRecord(last); {
	case !onRecord && len(ran) > 0:
		v.t.Errorf("on %s scripts did %q, and that they run is not on record", v.id, ran)
	case onRecord && v.scripts == "":
		v.scripts = string(ran) + "." // that it is on record is one thing, what they did another
	}
	v.pid, v.killed, v.seen = pid, time.Now(), boot{log: v.seen.log + last.log, kubelet: v.seen.kubelet + last.kubelet}
	return last
}

// bootsAgain waits until the machine runs, and not as it did before it was killed.
func (v *victim) bootsAgain() (pid int) {
	v.t.Helper()
	v.promptly("boots", func() bool {
		pid = v.processes()["machine/"+v.id].PID
		return pid != 0 && pid != v.pid
	})
	return pid
}

func lastLine(log string) string {
	lines := bytes.Split(bytes.TrimSpace([]byte(log)), []byte("\n"))
	return fmt.Sprintf("%q", lines[len(lines)-1])
}

// comesBack waits until the machine is a Ready node, by what its kubelet says now and not by what it said before.
func (v *victim) comesBack() {
	v.t.Helper()
	record, err := os.ReadFile(filepath.Join(v.dir.Machine(v.id), "instance.json"))
	if err != nil {
		v.t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(record), `"privateDNSName": "`)
	v.node, _, _ = strings.Cut(rest, `"`)
	took := v.eventually(v.node+" is Ready", func() error {
		said, err := v.kubectl("get", "node", v.node, "-o", `jsonpath={.status.conditions[?(@.type=="Ready")].status} {.status.conditions[?(@.type=="Ready")].lastHeartbeatTime}`)
		if err != nil {
			return err
		}
		status, beat, _ := strings.Cut(said, " ")
		if at, err := time.Parse(time.RFC3339, beat); err != nil || status != "True" || at.Before(v.killed.Truncate(time.Second)) {
			return fmt.Errorf("Ready is %q (killed at %s): %w", said, v.killed.UTC().Format(time.RFC3339), err)
		}
		return nil
	})
	took += v.eventually("the kubelet of "+v.node+" answers", func() error {
		_, err := v.kubectl("get", "--raw", "/api/v1/nodes/"+v.node+"/proxy/healthz")
		return err
	})
	v.t.Logf("%s is Ready again, and answers, after %s", v.node, took.Round(100*time.Millisecond))
}

// wholeMachine looks, on the machine, for what only a program that was killed can have left, and compares the agent's
// files with what follows from what the machine is told, but for lines that follow from what its kernel can do and from
// its user namespace.
const wholeMachine = `set -e
find /etc /opt /root /var/lib -xdev \( -path /opt/muster/bin -o -path '/var/lib/containerd/io.containerd.*' -o -path /var/lib/kubelet/pods \) -prune -o \
	\( -name '.new-*' -o -name '.overlay-*' -o -name bootstrap-kubeconfig -o -path '/var/lib/muster/scripts/*' -o -name '*aside*' \) -printf '%p is left\n'
grep -rIlE '(^|[^a-z0-9])[a-z0-9]{6}\.[a-z0-9]{16}([^a-z0-9]|$)' /etc /var/lib/muster /var/lib/kubelet | sed 's/$/ has a token/'
find /var/lib/kubelet/pki /var/lib/kubelet/kubeconfig /var/lib/muster /etc/containerd/config.toml -type f -perm /077 -printf '%p can be read by others\n'
find /var/lib/kubelet/pki /var/lib/muster /etc/kubernetes -type f -empty -printf '%p is empty\n'
ctr --namespace k8s.io images list --quiet | grep -c '^muster.dev/[a-z]*:v' | grep -vx 3 | sed 's/$/ images of three/'
rm -rf /tmp/rendered
muster node config render -c imds://user-data -c - --layout machine --to /tmp/rendered
cd /tmp/rendered
for file in $(find . -type f ! -name bootstrap-kubeconfig); do
	[ "$(stat -c %a "$file")" = "$(stat -c %a "/$file")" ] || echo "$file has another mode than is rendered"
	known="/restrict_oom_score_adj/d; /snapshotter/d; /\"featureGates\": {/,/}/d"
	sed "$known" "$file" >rendered
	sed "$known" "/$file" >there
	diff rendered there || echo "$file is another than is rendered"
done
rm -rf /tmp/rendered
`

// isWhole looks at all that a kill could have spoilt.
func (v *victim) isWhole() {
	v.t.Helper()
	var told string
	if v.bootstrap == "Token" { // it is not told its token any more, and would be taken for one that joins by its role
		told = "{apiVersion: node.muster.dev/v1alpha1, kind: NodeConfig, spec: {join: {token: abcdef.0123456789abcdef}}}"
	}
	looks := v.command(v.t.Context(), "exec", "--stdin", v.id, "--", "sh", "-c", wholeMachine)
	looks.Stdin = strings.NewReader(told)
	var left, talk bytes.Buffer
	looks.Stdout, looks.Stderr = &left, &talk
	if err := looks.Run(); err != nil || left.Len() > 0 {
		v.t.Errorf("on %s: %v %s\n%s", v.node, err, &talk, &left)
	}
	want := allScripts
	if v.scripts != "" {
		want = strings.TrimSuffix(v.scripts, ".")
	}
	if ran, err := os.ReadFile(filepath.Join(v.disk(), "var/lib/scripts-ran")); string(ran) != want || !strings.HasPrefix(allScripts, want) || err != nil && want != "" {
		v.t.Errorf("the scripts did %q, and %q by the time that they were on record: %v", ran, want, err)
	}
	if got := v.mustKubectl("get", "nodes", "-l", "muster.dev/nodegroup="+v.group, "-o", "jsonpath={.items[*].metadata.name} {.items[*].spec.providerID}"); got != v.node+" aws:///us-east-1a/"+v.id {
		v.t.Errorf("the nodes of %s are %s, not %s alone, which is %s", v.group, got, v.node, v.id)
	}
	if got := v.mustKubectl("--context=muster-management", "get", "machines", "-l", "muster.dev/nodegroup="+v.group, "-o", "jsonpath={.items[*].metadata.name}"); got != v.id {
		v.t.Errorf("the machines of %s are %s, not %s alone", v.group, got, v.id)
	}
	v.certsAreGood()
}
