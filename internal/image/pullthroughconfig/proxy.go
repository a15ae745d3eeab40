// SPDX-License-Identifier: Apache-2.0

package pullthroughconfig

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"strings"

	"golang.org/x/net/http/httpproxy"

	"muster.dev/muster/internal/platform/atomicfile"
)

// Proxy is the host's proxy settings for HTTPS, as environments have them. The URL may hold a password.
type Proxy struct {
	HTTPS string `json:"httpsProxy,omitempty"`
	No    string `json:"noProxy,omitempty"`
}

// ProxyOfEnvironment reads HTTPS_PROXY and NO_PROXY, or the same in lower case.
func ProxyOfEnvironment() Proxy {
	found := httpproxy.FromEnvironment()
	if found.HTTPSProxy == "" {
		return Proxy{}
	}
	return Proxy{found.HTTPSProxy, found.NoProxy}
}

// Check checks the settings. The error repeats nothing of the URL.
func (p Proxy) Check() error {
	if p.HTTPS == "" {
		return nil
	}
	at, err := url.Parse(p.HTTPS)
	if !strings.Contains(p.HTTPS, "://") { // HOST:PORT
		at, err = url.Parse("http://" + p.HTTPS)
	}
	if err != nil || at.Host == "" {
		return errors.New("HTTPS_PROXY is not the URL of a proxy, such as http://proxy.example.com:3128")
	}
	switch at.Scheme {
	case "http", "https", "socks5", "socks5h":
		return nil
	}
	return errors.New("HTTPS_PROXY must begin with http://, https:// or socks5://")
}

// For finds the proxy for a URL; nil means that there is none.
func (p Proxy) For(to *url.URL) (*url.URL, error) {
	return (&httpproxy.Config{HTTPSProxy: p.HTTPS, NoProxy: p.No}).ProxyFunc()(to)
}

// WriteProxy records the settings, for the owner's eyes alone.
func WriteProxy(path string, p Proxy) error {
	if err := p.Check(); err != nil {
		return err
	}
	content, err := json.Marshal(p)
	if err != nil {
		return fmt.Errorf("recording the host's proxy: %w", err)
	}
	return atomicfile.Write(path, append(content, '\n'), 0o600)
}

// ReadProxy reads what was recorded; without a record there is no proxy.
func ReadProxy(path string) (Proxy, error) {
	var p Proxy
	content, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return p, nil
	}
	if err != nil {
		return p, fmt.Errorf("reading the host's proxy: %w", err)
	}
	if json.Unmarshal(content, &p) != nil || p.Check() != nil {
		return Proxy{}, fmt.Errorf("reading the host's proxy: %s is damaged: `muster up` writes it anew", path)
	}
	return p, nil
}
