// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"helm.sh/helm/v4/pkg/chart/common"
)

// manifests renders every profile: contents by path below deploy/.
func manifests(deploy string) (map[string][]byte, error) {
	c, err := loadChart(deploy)
	if err != nil {
		return nil, err
	}
	profiles, err := filepath.Glob(filepath.Join(deploy, "profiles", "*.yaml"))
	if err != nil {
		return nil, err
	}
	if len(profiles) == 0 {
		return nil, errors.New("there are no profiles: is -deploy the directory deploy/?")
	}
	files := map[string][]byte{}
	for _, path := range profiles {
		raw, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("reading a profile: %w", err)
		}
		values, err := common.ReadValues(raw)
		if err != nil {
			return nil, fmt.Errorf("reading the profile %s: %w", path, err)
		}
		objects, err := render(c, values)
		if err != nil {
			return nil, fmt.Errorf("profile %s: %w", path, err)
		}
		name := filepath.Base(path)
		var b bytes.Buffer
		b.WriteString(header(name, about(raw)))
		b.WriteString(namespaceObject(namespace, values))
		for _, o := range objects {
			fmt.Fprintf(&b, "---\n%s\n", strings.TrimSpace(o.Content))
		}
		files[filepath.Join("manifests", name)] = b.Bytes()
	}
	if err := authenticator(deploy, files); err != nil {
		return nil, err
	}
	return files, webhook(deploy, files)
}

// about is what a profile says about itself in the comment at its top.
func about(profile []byte) string {
	var b strings.Builder
	for line := range strings.Lines(string(profile)) {
		if !strings.HasPrefix(line, "#") {
			break
		}
		if !strings.Contains(line, "SPDX") && b.Len()+len(strings.Trim(line, "# \n")) > 0 {
			b.WriteString(line)
		}
	}
	return b.String()
}

func header(profile, about string) string {
	return fmt.Sprintf("# SPDX-License-Identifier: Apache-2.0\n#\n%s#\n# Rendered by `make manifests` from deploy/%s with deploy/profiles/%s: change those.\n",
		about, chartDir, profile)
}

// namespaceObject is the namespace, which holds pods to the strictest standard that they can meet:
// https://kubernetes.io/docs/concepts/security/pod-security-standards/
func namespaceObject(namespace string, values map[string]any) string {
	standard := "restricted"
	if ofHost(values) {
		standard = "privileged"
	}
	return fmt.Sprintf("apiVersion: v1\nkind: Namespace\nmetadata:\n  name: %s\n  labels:\n    app.kubernetes.io/part-of: muster\n    pod-security.kubernetes.io/enforce: %s\n",
		namespace, standard)
}

// ofHost reports whether the values ask for something of the host: its files, its network, or its root.
func ofHost(values map[string]any) bool {
	if user, ok := values["runAsUser"].(float64); ok && user == 0 || values["hostNetwork"] == true {
		return true
	}
	mounts, _ := values["mounts"].([]any)
	for _, m := range mounts {
		if m, ok := m.(map[string]any); ok && m["hostPath"] != nil {
			return true
		}
	}
	return false
}
