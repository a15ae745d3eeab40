// SPDX-License-Identifier: Apache-2.0

package hostjoin

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
)

// changedSettings are those of the kernel that a node's programs change: the kubelet, unless protectKernelDefaults
// forbids it (pkg/kubelet/cm/container_manager_linux.go, setupKernelTunables; values in k8s.io/component-helpers,
// node/util/sysctl), the network plugin ptp, which has packets forwarded, and kube-proxy (package render,
// newKubeProxyConfig), which has connections remembered.
func changedSettings() map[string]string {
	return map[string]string{
		"kernel.keys.root_maxbytes":                          "25000000",
		"kernel.keys.root_maxkeys":                           "1000000",
		"kernel.panic":                                       "10",
		"kernel.panic_on_oops":                               "1",
		"net.ipv4.ip_forward":                                "1",
		"net.netfilter.nf_conntrack_tcp_timeout_close_wait":  "3600",
		"net.netfilter.nf_conntrack_tcp_timeout_established": "86400",
		"vm.overcommit_memory":                               "1",
		"vm.panic_on_oom":                                    "0",
	}
}

func settingPath(name string) string { return "/proc/sys/" + strings.ReplaceAll(name, ".", "/") }

func (d disk) setting(name string) (string, error) {
	raw, err := os.ReadFile(d.at(settingPath(name)))
	return strings.TrimSpace(string(raw)), err
}

// settings returns the current values of the settings that will be changed. Settings that this kernel does not have are
// left out.
func (d disk) settings() ([]Setting, error) {
	var settings []Setting
	changed := changedSettings()
	for _, name := range slices.Sorted(maps.Keys(changed)) {
		value, err := d.setting(name)
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return nil, fmt.Errorf("reading setting %s: %w", name, err)
		case value != changed[name]:
			settings = append(settings, Setting{Name: name, Before: value})
		}
	}
	return settings, nil
}

// restore sets what is as the node's programs left it to what was before. A setting that somebody has changed since
// stays.
func (d disk) restore(s Setting) error {
	changed, ok := changedSettings()[s.Name]
	if !ok {
		return nil
	}
	value, err := d.setting(s.Name)
	if err != nil || value != changed {
		return err
	}
	if err := os.WriteFile(d.at(settingPath(s.Name)), []byte(s.Before+"\n"), 0o600); err != nil {
		return fmt.Errorf("restoring setting %s to %s: %w", s.Name, s.Before, err)
	}
	return nil
}
