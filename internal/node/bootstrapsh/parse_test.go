// SPDX-License-Identifier: Apache-2.0

package bootstrapsh_test

import (
	"bytes"
	"encoding/base64"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"muster.dev/muster/internal/node/bootstrapsh"
	"muster.dev/muster/internal/node/nodeconfig"
)

var update = flag.Bool("update", false, "write the golden files anew")

// called runs user data with a bootstrap.sh that notes its arguments, and returns them.
func called(t *testing.T, userData []byte) []string {
	t.Helper()
	authority, err := os.ReadFile("testdata/ca.crt")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	stub, script, noted := filepath.Join(dir, "bootstrap.sh"), filepath.Join(dir, "user-data.sh"), filepath.Join(dir, "noted")
	if err := os.WriteFile(stub, []byte("#!/bin/sh\nprintf '%s\\0' \"$@\" > "+noted+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	userData = bytes.ReplaceAll(userData, []byte("AUTHORITY"), []byte(base64.StdEncoding.EncodeToString(authority)))
	userData = bytes.ReplaceAll(userData, []byte("/etc/eks/bootstrap.sh"), []byte(stub))
	if err := os.WriteFile(script, userData, 0o700); err != nil {
		t.Fatal(err)
	}
	command := exec.Command("/bin/sh", script)
	command.Env = []string{"PATH=" + os.Getenv("PATH")}
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("user data failed: %v\n%s", err, out)
	}
	raw, err := os.ReadFile(noted)
	if err != nil {
		t.Fatal(err)
	}
	args := strings.Split(string(raw), "\x00")
	return args[:len(args)-1]
}

// TestParse pins what becomes of user data: a folder below testdata/cases each, with the script as it would run and
// what comes of it. The NodeConfig can be read back.
func TestParse(t *testing.T) {
	dirs, err := filepath.Glob("testdata/cases/*")
	if err != nil || len(dirs) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	for _, dir := range dirs {
		t.Run(filepath.Base(dir), func(t *testing.T) {
			userData, err := os.ReadFile(filepath.Join(dir, "user-data.sh"))
			if err != nil {
				t.Fatal(err)
			}
			got := outcome(t, called(t, userData))
			path := filepath.Join(dir, "outcome.txt")
			if *update {
				if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("differs from %s; run go test ./internal/node/bootstrapsh -update if that is meant (-want +got):\n%s", path, diff)
			}
		})
	}
}

func outcome(t *testing.T, args []string) string {
	t.Helper()
	result, err := bootstrapsh.Parse(args)
	if errors.Is(err, bootstrapsh.ErrHelp) {
		return bootstrapsh.Usage()
	}
	if err != nil {
		return "error: " + strings.ReplaceAll(err.Error(), "\n", "\nerror: ") + "\n"
	}
	raw, err := nodeconfig.Marshal(result.Spec)
	if err != nil {
		t.Fatal(err)
	}
	merged, err := nodeconfig.Read([]nodeconfig.Source{{Name: "bootstrap", Content: raw}}, false)
	if err != nil {
		t.Fatalf("what was written cannot be read: %v\n%s", err, raw)
	}
	if diff := cmp.Diff(result.Spec, merged.Spec); diff != "" {
		t.Errorf("not the same when read back (-written +read):\n%s", diff)
	}
	var text strings.Builder
	for _, line := range result.Understood {
		fmt.Fprintln(&text, "understood:", line)
	}
	for _, line := range result.Warnings {
		fmt.Fprintln(&text, "warning:", line)
	}
	if result.ContainerdConfigFile != "" {
		fmt.Fprintln(&text, "reads:", result.ContainerdConfigFile)
	}
	text.Write(raw)
	return text.String()
}

// A program that writes NodeConfigs has every flag's help and place.
func TestUsageHasEveryFlagOfTheScript(t *testing.T) {
	for flag := range strings.FieldsSeq(`--apiserver-endpoint --aws-api-retry-attempts --b64-cluster-ca --cluster-id --container-runtime
		--containerd-config-file --dns-cluster-ip --docker-config-json --enable-docker-bridge --enable-local-outpost --ip-family
		--kubelet-extra-args --local-disks --mount-bpf-fs --pause-container-account --pause-container-version --service-ipv4-cidr
		--service-ipv6-cidr --use-max-pods`) {
		if !strings.Contains(bootstrapsh.Usage(), "  "+flag+" ") {
			t.Errorf("%s is missing in the help", flag)
		}
	}
}

func TestTooManyArguments(t *testing.T) {
	if _, err := bootstrapsh.Parse(make([]string, 257)); err == nil || !strings.Contains(err.Error(), "at most 256") {
		t.Errorf("got %v, want a limit", err)
	}
}

func TestArgumentsThatAreNotText(t *testing.T) {
	for _, arg := range []string{"--x='\x94'", "--x=\x01", "--x=\u0080", "--x=\ufffe"} {
		if _, err := bootstrapsh.Parse([]string{"c", "--kubelet-extra-args", arg}); err == nil || !strings.Contains(err.Error(), "argument 3 is not text") {
			t.Errorf("%q: got %v, want that it is no text", arg, err)
		}
	}
}

// A result can be written and read back, and says no more than the arguments.
func FuzzParse(f *testing.F) {
	for _, line := range []string{
		"c", "c\x00--use-max-pods\x00false", "--kubelet-extra-args\x00--v=4 '--max-pods=3'\x00c", "--b64-cluster-ca\x00!\x00c",
		"c\x00--dns-cluster-ip\x00::1,10.0.0.1", "c\x00--ip-family\x00ipv6\x00--service-ipv6-cidr\x00fd00::/108", "-x", "--help",
		"--kubelet-extra-args\x00--0'\x94'\x00c", "--kubelet-extra-args\x00--0='\x01'\x00c",
	} {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, line string) {
		result, err := bootstrapsh.Parse(strings.Split(line, "\x00"))
		if err != nil {
			return
		}
		raw, err := nodeconfig.Marshal(result.Spec)
		if err != nil {
			t.Fatal(err)
		}
		merged, err := nodeconfig.Read([]nodeconfig.Source{{Name: "bootstrap", Content: raw}}, false)
		if err != nil {
			t.Fatalf("what was written cannot be read: %v\n%s", err, raw)
		}
		if diff := cmp.Diff(result.Spec, merged.Spec); diff != "" {
			t.Errorf("not the same when read back (-written +read):\n%s", diff)
		}
		if merged.Spec.Join.Token != "" {
			t.Error("a token came out of nothing")
		}
	})
}
