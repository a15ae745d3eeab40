// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"muster.dev/muster/internal/node/bootreport"
	"muster.dev/muster/internal/node/nodeconfig"
	"muster.dev/muster/internal/node/render"
	"muster.dev/muster/internal/node/userdata"
)

func part(name, text string) userdata.Part {
	return userdata.Part{MediaType: userdata.TypeShellScript, Name: name, Content: []byte(text)}
}

// reports gives the agent a file for its host, and returns how the host reads it.
func reports(t *testing.T, a *agent) func() bootreport.Report {
	t.Helper()
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, bootreport.Path)), 0o700); err != nil {
		t.Fatal(err)
	}
	file, err := bootreport.Create(filepath.Join(dir, bootreport.Path))
	if err != nil {
		t.Fatal(err)
	}
	a.reports = file
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = root.Close() })
	return func() bootreport.Report {
		report, _ := bootreport.Read(root)
		return report
	}
}

// Scripts run in order, once in the life of an instance. A script that fails does not keep the next from running, and
// is a failure of this boot and the next. Their output is closed to others. Another instance on the same disk runs its
// own.
func TestScripts(t *testing.T) {
	a := newAgent(t)
	a.instance = render.Instance{ID: "i-0000000000000000a"}
	var log bytes.Buffer
	a.log = slog.New(slog.NewTextHandler(&log, nil))
	ran := filepath.Join(a.config.DataDir, "ran")
	scripts := []userdata.Part{
		part("first", "#!/bin/sh\necho one >>"+ran+"; echo 'mkfs: no disk'; echo TOKEN=hunter2; exit 4\n"),
		part("none", "echo never >>"+ran+"\n"),
		part("lost", "#!/no/such/interpreter\n"),
		part("last", "#!/bin/sh -e\necho two >>"+ran+"\n"),
	}
	want := []string{
		"the script first failed: exit status 4; its last lines: mkfs: no disk / TOKEN=(not shown)",
		"the script none failed: it does not begin with #! and an interpreter",
		"the script lost failed: there is no such interpreter as its first line names",
	}
	for range 2 {
		if failed, err := a.runScripts(t.Context(), scripts); err != nil || !slices.Equal(failed, want) {
			t.Errorf("failed: %q, %v", failed, err)
		}
	}
	if got, err := os.ReadFile(ran); err != nil || string(got) != "one\ntwo\n" {
		t.Errorf("scripts ran: %q, %v", got, err)
	}
	for _, want := range []string{"script=first error=\"exit status 4\"", "does not begin with #!", "no such interpreter", "script=last took="} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("%q is not in the log:\n%s", want, &log)
		}
	}
	if strings.Contains(log.String(), "mkfs") {
		t.Error("the log has what a script printed")
	}
	path := filepath.Join(a.config.LogDir, scriptLog)
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%s: %v, %v", path, info, err)
	}
	if left, err := os.ReadDir(filepath.Join(a.config.DataDir, "scripts")); err != nil || len(left) > 0 {
		t.Errorf("scripts are left: %v, %v", left, err)
	}
	a.instance.ID = "i-0000000000000000b"
	if failed, err := a.runScripts(t.Context(), scripts[3:]); err != nil || len(failed) > 0 {
		t.Errorf("another instance's scripts failed: %q, %v", failed, err)
	}
	if got, _ := os.ReadFile(ran); string(got) != "one\n"+strings.Repeat("two\n", 2) {
		t.Errorf("another instance's scripts: %q", got)
	}
}

// A machine that goes down while a script runs does not run it again when it boots, and knows that it was not finished.
// A machine that an earlier version of the agent booted is left alone.
func TestScriptsOfABootThatWasCutShort(t *testing.T) {
	a := newAgent(t)
	a.instance = render.Instance{ID: "i-0000000000000000a"}
	ctx, cancel := context.WithCancel(t.Context())
	started := filepath.Join(a.config.DataDir, "started")
	go func() {
		poll(t.Context(), time.Millisecond, func() bool { return exists(started) })
		cancel()
	}()
	scripts := []userdata.Part{part("one", "#!/bin/sh\nsleep 600 &\n: >"+started+"\nwait\n"), part("two", "#!/bin/sh\n")}
	if _, err := a.runScripts(ctx, scripts); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	want := []string{
		"the script one was cut short when the machine went down, and no script runs twice",
		"the script two did not run, as the machine went down before",
	}
	if failed, err := a.runScripts(t.Context(), scripts); err != nil || !slices.Equal(failed, want) {
		t.Errorf("failed: %q, %v", failed, err)
	}
	if err := os.WriteFile(filepath.Join(a.config.DataDir, "scripts-i-0000000000000000b"), []byte("2026-11-20T12:00:00Z\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	a.instance.ID = "i-0000000000000000b"
	if failed, err := a.runScripts(t.Context(), scripts); err != nil || len(failed) > 0 {
		t.Errorf("of an earlier version: %q, %v", failed, err)
	}
}

// A script that hangs is reported while it hangs, with what it printed last. When it ends the report is over.
func TestScriptThatHangs(t *testing.T) {
	a := newAgent(t)
	a.instance = render.Instance{ID: "i-0000000000000000a"}
	a.config.ScriptSlow = 10 * time.Millisecond
	report := reports(t, a)
	failed := make(chan []string, 1)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	lock := filepath.Join(a.config.DataDir, "lock")
	go func() {
		all, err := a.runScripts(ctx, []userdata.Part{part("user data, part 2", "#!/bin/sh\necho waiting for the lock\nuntil test -e "+lock+"; do sleep 0.01; done\n")})
		if err != nil {
			all = append(all, err.Error())
		}
		failed <- all
	}()
	if !poll(ctx, time.Millisecond, func() bool { return strings.Contains(report().Message, "waiting for the lock") }) {
		t.Fatalf("reported: %+v", report())
	}
	if got := report(); got.Reason != bootreport.UserDataSlow || !strings.HasPrefix(got.Message, "the script user data, part 2 has been running since ") {
		t.Errorf("reported: %+v", got)
	}
	if err := os.WriteFile(lock, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if got := <-failed; len(got) > 0 {
		t.Errorf("failed: %q", got)
	}
	if got := report(); got.Reason != "" {
		t.Errorf("it is over, and reported is %+v", got)
	}
}

// A script that does not end is ended when its time is up, and has failed.
func TestScriptThatTakesTooLong(t *testing.T) {
	a := newAgent(t)
	a.instance = render.Instance{ID: "i-0000000000000000a"}
	a.config.ScriptPatience = 100 * time.Millisecond
	failed, err := a.runScripts(t.Context(), []userdata.Part{part("one", "#!/bin/sh\nsleep 600\n")})
	if err != nil || !slices.Equal(failed, []string{"the script one failed: took longer than 100ms; it printed nothing"}) {
		t.Errorf("failed: %q, %v", failed, err)
	}
}

// A machine does not become a node if part of its user data failed: a script, arguments that bootstrap.sh refused
// though its script went on, or a part that nothing carries out. A NodeConfig may say otherwise.
func TestUserDataThatFails(t *testing.T) {
	const multipart = "Content-Type: multipart/mixed; boundary=X\n\n--X\nContent-Type: %s\n\n%s\n--X\nContent-Type: application/node.eks.aws\n\n%s\n--X--\n"
	for name, test := range map[string]struct{ mediaType, content, refused, want string }{
		"a script":       {mediaType: "text/x-shellscript", content: "#!/bin/sh\necho no disk; exit 3", want: "the script user data, part 1 failed: exit status 3; its last lines: no disk"},
		"a cloud-config": {mediaType: "text/cloud-config", content: "#cloud-config\npackages: [jq]", want: "user data, part 1 is text/cloud-config, which is not carried out here: write it as a script"},
		"an untyped one": {mediaType: "text/plain", content: "#cloud-config\npackages: [jq]", want: "user data, part 1 is text/cloud-config, which is not carried out here"},
		"a boothook":     {mediaType: "text/cloud-boothook", content: "#!/bin/sh", want: "user data, part 1 is text/cloud-boothook"},
		"bootstrap.sh":   {mediaType: "text/plain", content: "a note", refused: "unknown flag --kubelet-extra-arg", want: "bootstrap.sh was refused: unknown flag --kubelet-extra-arg"},
		"a mistyped NodeConfig": {
			mediaType: "text/yaml", content: "apiVersion: node.eks.aws/v1alpha1",
			want: "user data, part 1 looks like a NodeConfig and is ignored: its Content-Type is text/yaml, not application/node.eks.aws",
		},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAgent(t)
			a.instance = render.Instance{ID: "i-0000000000000000a"}
			if test.refused != "" {
				if err := os.WriteFile(filepath.Join(a.config.DropInDir, RefusedBootstrap), []byte(test.refused+"\n"), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			data := func(config string) told {
				return told{userData: []byte(fmt.Sprintf(multipart, test.mediaType, test.content, config))}
			}
			err := a.become(t.Context(), data("apiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig"))
			if err == nil || !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), "spec.instance.userDataFailurePolicy: Ignore") {
				t.Fatalf("got %v", err)
			}
			if reason, _ := failure(err); reason != bootreport.UserDataFailed {
				t.Errorf("its reason is %s", reason)
			}
			// With the choice it goes on to what it lacks: a cluster to join.
			err = a.become(t.Context(), data("apiVersion: node.muster.dev/v1alpha1\nkind: NodeConfig\nspec: {instance: {userDataFailurePolicy: Ignore}}"))
			if reason, _ := failure(err); err == nil || reason != bootreport.NodeConfigRefused || strings.Contains(err.Error(), test.want) {
				t.Errorf("with the choice: %v", err)
			}
		})
	}
}

// Deliberate content is not a failure: parts of types that cloud-init does not know, either, and calls of bootstrap.sh
// that went well.
func TestUserDataThatDoesNotFail(t *testing.T) {
	a := newAgent(t)
	a.instance = render.Instance{ID: "i-0000000000000000a"}
	err := a.become(t.Context(), told{userData: []byte("Content-Type: multipart/mixed; boundary=X\n\n--X\nContent-Type: text/plain\n\na note\n--X\nContent-Type: text/x-shellscript\n\n#!/bin/sh\n--X--\n")})
	if !errors.Is(err, nodeconfig.ErrNone) {
		t.Errorf("got %v", err)
	}
}
