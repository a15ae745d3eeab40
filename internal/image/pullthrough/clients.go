// SPDX-License-Identifier: Apache-2.0

package pullthrough

import (
	"fmt"
	"net/http"
	"net/netip"
	"os"
	"reflect"
	"time"

	"muster.dev/muster/internal/image/upstream"
)

// client asks a registry for a VPC, by the rules that it was made with.
type client struct {
	*upstream.Client
	egress   Egress
	settings Settings
	made     time.Time
}

const (
	// clientLife is how long a client is used: then files that the settings name are read again.
	clientLife = time.Minute
	// awayTime is how long a registry that could not be had is not asked again, if there is a copy.
	awayTime = 15 * time.Second
	// maxConfig bounds the files that settings name, in bytes.
	maxConfig = 1 << 20
)

// client finds what asks a registry for a VPC now; a VPC without a way out has none.
func (h *Handler) client(q *request) (*client, error) {
	egress, err := h.Egress(q.vpc)
	if err != nil {
		return nil, fmt.Errorf("reading what may leave %s: %w", q.vpc, err)
	}
	if !egress.Policy.IsOpen() {
		return nil, &failure{http.StatusForbidden, "DENIED", fmt.Sprintf("%s has no way out (spec.egress.mode of the VPC), and this was not pulled before: use `muster image load`, or mode NAT", q.vpc)}
	}
	h.mutex.Lock()
	defer h.mutex.Unlock()
	if c := h.clients[q.place]; c != nil {
		if c.egress.Policy.Equal(egress.Policy) && reflect.DeepEqual(c.egress.Own, egress.Own) && reflect.DeepEqual(c.settings, q.settings) && time.Since(c.made) < clientLife {
			return c, nil
		}
		c.Close()
		delete(h.clients, q.place)
	}
	made, err := h.newClient(q, egress)
	if err != nil {
		return nil, err
	}
	c := &client{made, egress, q.settings, time.Now()}
	h.clients[q.place] = c
	return c, nil
}

// stillOpen is an error if what may leave a VPC is not as it was when a client was made.
func (h *Handler) stillOpen(vpc string, c *client) error {
	now, err := h.Egress(vpc)
	if err == nil && !now.Policy.Equal(c.egress.Policy) {
		err = fmt.Errorf("what may leave %s has changed", vpc)
	}
	return err
}

func (h *Handler) newClient(q *request, egress Egress) (*upstream.Client, error) {
	found, _ := q.settings.Find(q.registry)
	config := upstream.Config{Registry: q.registry, Way: upstream.Way{Refuse: func(to netip.Addr) error { return h.Refuse(egress, to) }}}
	if q.settings.Proxy.HTTPS != "" {
		config.Way.Proxy = q.settings.Proxy.For
	}
	if len(egress.Policy.Denied) > 0 {
		config.Way.NoProxy = "the VPC has deniedRanges, and the host's proxy finds addresses by itself"
	}
	var err error
	if path := found.CertificateAuthority; path != "" {
		if config.Way.Roots, err = readSmall(path); err != nil {
			return nil, h.unset("certificateAuthority of "+q.registry, err)
		}
	}
	if path := q.settings.DockerConfig; path != "" {
		content, err := readSmall(path)
		if err != nil {
			return nil, h.unset("dockerConfig", err)
		}
		settings := q.settings
		config.Credentials = func(registry string) (user, password string, err error) {
			if _, ok := settings.Find(registry); !ok {
				return "", "", nil // a redirect opens no more than a machine may name
			}
			user, password, err = upstream.Password(content, registry)
			if err != nil {
				err = h.unset("dockerConfig", err)
			}
			return user, password, err
		}
		if _, _, err := config.Credentials(q.registry); err != nil {
			return nil, err
		}
	}
	made, err := upstream.New(config)
	if err != nil {
		return nil, h.unset(q.registry, err)
	}
	return made, nil
}

// unset answers that a setting cannot be used. Machines are not told what is in files of the host.
func (h *Handler) unset(what string, err error) error {
	h.Log.Error("a setting in registries.yaml cannot be used", "setting", what, "error", err)
	return &failure{http.StatusServiceUnavailable, "UNAVAILABLE", what + " in registries.yaml cannot be used; the log of the registry says why"}
}

func readSmall(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > maxConfig {
		return nil, fmt.Errorf("%s is not a file of at most %d bytes", path, maxConfig)
	}
	return os.ReadFile(path)
}

// isAway reports whether a registry could not be had a moment ago.
func (h *Handler) isAway(p place) bool {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	return time.Now().Before(h.away[p])
}

func (h *Handler) setAway(p place, away bool) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	if delete(h.away, p); away {
		h.away[p] = time.Now().Add(awayTime)
	}
}
