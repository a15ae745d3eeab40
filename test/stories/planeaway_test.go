// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"gopkg.in/go-jose/go-jose.v2/jwt"

	"muster.dev/muster/internal/cluster/servicestatus"
	"muster.dev/muster/internal/plane/component"
)

// planeStory is a control plane whose account goes away.
type planeStory struct {
	*installation
	signs string // the id of the key
}

// TestPlaneWithoutTheAccount stops the account, kills the token signer and the pod identity webhook, and starts them as
// a supervisor would: tokens are signed by the same key, and pods get their identities. Then the account is back, and
// both follow it. In the end the installation is one of before the signer kept its keys.
//
//story:about plane/tokensigner plane/tokenkeys plane/signerclient plane/podidentity iam/podwebhook cluster/serve
func TestPlaneWithoutTheAccount(t *testing.T) {
	t.Parallel()
	i := newInstallation(t)
	i.muster("up", "--nodes", "1")
	i.ready()
	w := &planeStory{installation: i}
	for _, account := range []string{"app", "later", "plain"} {
		i.mustKubectl("create", "serviceaccount", account)
	}
	w.associate("app")
	w.signs = w.signer()
	for _, step := range []struct {
		name string
		run  func(*planeStory)
	}{
		{"the account is away", (*planeStory).accountAway},
		{"the account is back", (*planeStory).accountBack},
		{"an installation of before", (*planeStory).ofBefore},
	} {
		if !t.Run(step.name, func(t *testing.T) {
			own := &planeStory{installation: i.in(t), signs: w.signs}
			step.run(own)
			w.signs = own.signs
		}) {
			return
		}
	}
}

// associate gives a service account a role, and waits until its pods have it.
func (w *planeStory) associate(account string) {
	w.t.Helper()
	w.muster("create", "podidentityassociation", "--namespace", "default", "--service-account", account, "--role-arn", "arn:aws:iam::"+iamAccount+":role/app")
	w.eventually("pods of "+account+" have an identity", func() error {
		if has, err := w.hasIdentity(account); err != nil || !has {
			return fmt.Errorf("they have not: %w", err)
		}
		return nil
	})
}

// hasIdentity reports whether the webhook would give a pod its credentials.
func (w *planeStory) hasIdentity(account string) (bool, error) {
	pod := w.manifest(strings.NewReplacer("NAME", "dry", "ACCOUNT", account).Replace(plainPod))
	env, err := w.kubectl("create", "--dry-run=server", "-f", pod, "-o", "jsonpath={.spec.containers[0].env[*].name}")
	return strings.Contains(env, "AWS_CONTAINER_CREDENTIALS_FULL_URI"), err
}

// signer is the id of the key of a new token. The API server waits for the signer.
func (w *planeStory) signer() string {
	w.t.Helper()
	parsed, err := jwt.ParseSigned(w.mustKubectl("create", "token", "app"))
	if err != nil {
		w.t.Fatal(err)
	}
	return parsed.Headers[0].KeyID
}

// started is how a process was started.
type started struct {
	path, dir string
	args, env []string
}

// howStarted reads it of a process that runs.
func (w *planeStory) howStarted(name string) started {
	w.t.Helper()
	proc := fmt.Sprintf("/proc/%d/", w.processes()[name].PID)
	line, err := os.ReadFile(proc + "cmdline")
	env, errEnv := os.ReadFile(proc + "environ")
	if err = errors.Join(err, errEnv); err != nil {
		w.t.Fatalf("%s: %v", name, err)
	}
	split := func(raw []byte) []string { return strings.Split(strings.TrimSuffix(string(raw), "\x00"), "\x00") }
	args := split(line)
	return started{path: args[0], dir: w.cluster().Component(name), args: args[1:], env: split(env)}
}

// again starts a process as it was started, and leaves it to the account.
func (w *planeStory) again(s started) {
	w.t.Helper()
	cmd := exec.Command(s.path, s.args...) // it outlives the step
	cmd.Dir, cmd.Env = s.dir, s.env
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	log, err := os.OpenFile(w.cluster().Log(filepath.Base(s.dir)), os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		w.t.Fatal(err)
	}
	defer func() { _ = log.Close() }()
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	go func() { _ = cmd.Wait() }() // the account ends it
}

// stopAccount ends the service and its guard. Each starts the other again.
func (w *planeStory) stopAccount() {
	w.t.Helper()
	w.eventually("neither the service nor its guard runs", func() error {
		all := w.processes()
		err := error(nil)
		for _, name := range []string{"guard", "serve"} {
			if p, ok := all[name]; ok {
				_ = syscall.Kill(p.PID, syscall.SIGKILL)
				err = errors.Join(err, fmt.Errorf("%s runs", name))
			}
		}
		return err
	})
}

func (w *planeStory) accountAway() {
	parts := []string{component.TokenSigner, component.PodWebhook}
	how := map[string]started{}
	for _, name := range parts {
		how[name] = w.howStarted(name)
	}
	w.stopAccount()
	for _, name := range parts {
		w.kill(name)
	}
	if has, err := w.hasIdentity("app"); has {
		w.t.Errorf("a webhook that was killed gives identities: %v", err)
	}
	for _, name := range parts {
		w.again(how[name])
	}
	if got := w.signer(); got != w.signs {
		w.t.Errorf("the key %s signs, not %s", got, w.signs)
	}
	w.eventually("pods of app have an identity", func() error {
		if has, err := w.hasIdentity("app"); err != nil || !has {
			return fmt.Errorf("they have not: %w", err)
		}
		return nil
	})
	if has, err := w.hasIdentity("plain"); has || err != nil {
		w.t.Errorf("pods of plain have an identity: %v, %v", has, err)
	}
	all := w.processes()
	for _, name := range []string{"serve", "guard"} {
		if _, ok := all[name]; ok {
			w.t.Errorf("%s ran meanwhile", name)
		}
	}
}

func (w *planeStory) accountBack() {
	w.muster("up")
	w.ready()
	if got := w.signer(); got != w.signs {
		w.t.Errorf("the key %s signs, not %s", got, w.signs)
	}
	w.rotated()
	w.associate("later")
}

// rotated replaces the key.
func (w *planeStory) rotated() {
	w.t.Helper()
	out, _ := w.muster("certs", "rotate", "service-account-keys", "--again", "--notice", "0s", "-o", "json")
	var keys []servicestatus.TokenKey
	if err := json.Unmarshal([]byte(out), &keys); err != nil || len(keys) < 2 || !slices.ContainsFunc(keys, func(k servicestatus.TokenKey) bool { return k.ID == w.signs }) {
		w.t.Fatalf("%v: %s", err, out)
	}
	was := w.signs
	w.signs = keys[len(keys)-1].ID
	if got := w.signer(); got != w.signs {
		w.t.Errorf("after a rotation the key %s signs, not %s", got, w.signs)
	}
	published, _ := w.muster("oidc", "jwks")
	for _, id := range []string{was, w.signs} {
		if !strings.Contains(published, id) {
			w.t.Errorf("the key %s is not published: %s", id, published)
		}
	}
}

// ofBefore leaves the files as the release before does, in which the service kept what the two parts now keep.
func (w *planeStory) ofBefore() {
	w.muster("down")
	c := component.Config{Dir: w.cluster()}
	for from, to := range map[string]string{
		filepath.Join(w.cluster().TokenSigner(), "keys.json"): c.TokenKeysBefore(), c.PodAssociations(): c.PodAssociationsBefore(),
	} {
		if err := os.Rename(from, to); err != nil {
			w.t.Fatal(err)
		}
	}
	if err := errors.Join(
		os.RemoveAll(w.cluster().TokenSigner()), os.RemoveAll(w.cluster().PodWebhook()), os.Remove(w.cluster().TokenKeys()),
		os.WriteFile(w.dir.Layout(), []byte("4\n"), 0o600), os.Remove(filepath.Join(string(w.dir), "written.json")),
	); err != nil {
		w.t.Fatal(err)
	}
	w.muster("up")
	w.ready()
	if got := w.signer(); got != w.signs {
		w.t.Errorf("the key %s signs, not %s", got, w.signs)
	}
	for account, want := range map[string]bool{"app": true, "later": true, "plain": false} {
		if has, err := w.hasIdentity(account); err != nil || has != want {
			w.t.Errorf("pods of %s have an identity: %v, %v", account, has, err)
		}
	}
	for _, path := range []string{c.TokenKeysBefore(), c.PodAssociationsBefore()} {
		w.eventually(path+" is gone", func() error {
			if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
				return fmt.Errorf("it is there: %w", err)
			}
			return nil
		})
	}
	w.rotated()
}
