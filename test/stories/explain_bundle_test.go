// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"archive/tar"
	"compress/gzip"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// bundleOf makes a bundle and returns its files.
func bundleOf(i *installation, args ...string) map[string]string {
	i.t.Helper()
	path := filepath.Join(i.t.TempDir(), "bundle.tar.gz")
	i.muster(append([]string{"explain", "--bundle", path}, args...)...)
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		i.t.Errorf("the bundle: %v, %v", info, err)
	}
	if out, talk, err := i.try("explain", "--bundle", path); code(err) != 2 || !strings.Contains(talk, "not overwritten") {
		i.t.Errorf("over a bundle that is there: %v\n%s%s", err, out, talk)
	}
	file, err := os.Open(path)
	if err != nil {
		i.t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	compressed, err := gzip.NewReader(file)
	if err != nil {
		i.t.Fatal(err)
	}
	files := map[string]string{}
	for archive := tar.NewReader(compressed); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			i.t.Fatal(err)
		}
		content, err := io.ReadAll(archive)
		if err != nil {
			i.t.Fatal(err)
		}
		files[header.Name] = string(content)
	}
}

// secretText finds tokens, and values with the name of a secret. The last group is the value.
var secretText = []*regexp.Regexp{
	regexp.MustCompile(`(eyJ[A-Za-z0-9_-]{6,}\.eyJ[A-Za-z0-9_-]{6,}\.[A-Za-z0-9_-]{16,})`),
	regexp.MustCompile(`\b[a-z0-9]{6}\.([a-z0-9]{16})\b`),
	regexp.MustCompile(`(?i)(?:aws_secret_access_key|secretAccessKey|client-key-data|"key"|"secret"|password|\btoken|secret:)["']?\s*[:=]?\s*["']?([A-Za-z0-9+/=_-]{20,})`),
}

// withoutSecrets are what a state directory has that is no secret of it, or is its machines' images.
var withoutSecrets = []string{"etcd", "management-etcd", "images", "registry", "log-store", "logs", "audit", "containerd", "overlay", "proc", "sys", "usr", "bin", "lib"}

// secretsOf are the secrets of an installation, each with where it is: private keys, tokens and credentials of the state
// directory and of the machines' disks, and the content of the Secrets of both planes.
func secretsOf(i *installation) map[string]string {
	i.t.Helper()
	found := map[string]string{}
	add := func(secret, where string) {
		if len(secret) >= 12 {
			found[secret] = where
		}
	}
	err := filepath.WalkDir(string(i.dir), func(path string, entry fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist): // gone meanwhile
			return nil
		case err != nil:
			return err
		case entry.IsDir() && slices.Contains(withoutSecrets, entry.Name()):
			return filepath.SkipDir
		case !entry.Type().IsRegular() || entry.Name() == "netns": // a namespace, which nothing can be read from
			return nil
		}
		info, err := entry.Info()
		if errors.Is(err, fs.ErrNotExist) || err == nil && info.Size() > 64<<10 {
			return nil
		}
		if err != nil {
			return err
		}
		raw, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		if strings.HasSuffix(path, ".key") {
			add(string(raw), path)
			add(base64.StdEncoding.EncodeToString(raw), path)
			add(hex.EncodeToString(raw), path)
		}
		for rest := raw; ; {
			var block *pem.Block
			if block, rest = pem.Decode(rest); block == nil {
				break
			}
			if !strings.Contains(block.Type, "PRIVATE KEY") {
				continue
			}
			encoded := base64.StdEncoding.EncodeToString(block.Bytes)
			for at := 0; at+48 <= len(encoded); at += 64 { // of each line of PEM, and of DER
				add(encoded[at:at+48], path)
			}
		}
		for _, find := range secretText {
			for _, match := range find.FindAllSubmatch(raw, -1) {
				add(string(match[len(match)-1]), path)
			}
		}
		return nil
	})
	if err != nil {
		i.t.Fatal(err)
	}
	for _, plane := range [][]string{nil, {managementContext}} {
		var list struct {
			Items []struct {
				Metadata struct{ Namespace, Name string }
				Data     map[string][]byte
			}
		}
		if err := json.Unmarshal([]byte(i.mustKubectl(append([]string{"get", "secrets", "-A", "-o", "json"}, plane...)...)), &list); err != nil {
			i.t.Fatal(err)
		}
		for _, secret := range list.Items {
			for key, value := range secret.Data {
				if key != "token-id" && key != "description" && key != "auth-extra-groups" && key != "expiration" { // not secret of a bootstrap token
					add(string(value), fmt.Sprintf("the Secret %s/%s, %s", secret.Metadata.Namespace, secret.Metadata.Name, key))
				}
			}
		}
	}
	return found
}

// bundleWithoutSecrets makes a bundle of the installation and looks in each of its files for each secret of it.
func bundleWithoutSecrets(t *testing.T, i *installation, machine string) {
	const planted = "hunter2-that-is-nowhere-else"
	i.mustKubectl("create", "secret", "generic", "planted", "--from-literal=password="+planted)
	i.apply(fmt.Sprintf("{apiVersion: muster.dev/v1alpha1, kind: NodeGroup, metadata: {namespace: muster, name: planted}, spec: {name: planted, scalingConfig: {desiredSize: 0}, launchTemplate: {userData: %q}}}",
		"#!/bin/sh\nPASSWORD="+planted+"\n"), managementContext)
	i.machineComes("invited", "bootstrap: Token, ")
	files, secrets := bundleOf(i), secretsOf(i)
	for _, name := range []string{"contents.json", "diagnosis.json", "evidence.json", "status.json", "versions.json", "management/machines.json", "clusters/muster/nodes.json", "logs/account/serve.log", "logs/clusters/muster/audit.log", "logs/machines/" + machine + "/kubelet.log"} {
		if files[name] == "" {
			t.Errorf("%s is not in the bundle", name)
		}
	}
	if !strings.Contains(files["clusters/muster/secrets.txt"], "default/planted\n") || !strings.Contains(files["contents.json"], "contents of Secrets") {
		t.Errorf("the names of Secrets: %s\n%s", files["clusters/muster/secrets.txt"], files["contents.json"])
	}
	if len(secrets) < 50 || secrets[planted] == "" {
		t.Fatalf("found %d secrets: the test looks in the wrong place", len(secrets))
	}
	size := 0
	for name, content := range files {
		size += len(content)
		if strings.Contains(content, planted) {
			t.Errorf("%s has what was planted", name)
		}
		for secret, where := range secrets {
			if strings.Contains(content, secret) || strings.Contains(content, base64.StdEncoding.EncodeToString([]byte(secret))) {
				t.Errorf("%s has a secret of %s", name, where)
			}
		}
	}
	t.Logf("%d secrets are in none of %d files of %d bytes", len(secrets), len(files), size)
	reads, _ := i.muster("logs", "reads")
	if !strings.Contains(reads, `"with":"muster explain --bundle"`) || !strings.Contains(reads, `"uid":0`) {
		t.Errorf("who made it is not recorded: %s", reads)
	}
	i.muster("delete", "nodegroup", "invited")
	i.muster("delete", "nodegroup", "planted")
	i.mustKubectl("delete", "secret", "planted")
}
