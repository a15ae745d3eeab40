// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"
)

const (
	maxToken = 64 << 10 // of an answer with a token, in bytes
	// defaultTokenLife is that of a token whose answer does not say ("Token Authentication"), maxTokenLife the longest that is believed.
	defaultTokenLife = time.Minute
	maxTokenLife     = time.Hour
	// tokenMargin is how long before its end a token is not used any more.
	tokenMargin = 10 * time.Second
	// maxLogins bounds the repositories whose tokens are remembered.
	maxLogins = 1024
)

// login is what goes into the Authorization header of requests about a repository.
type login struct {
	header string
	until  time.Time
}

func (c *Client) loggedIn(repository string) string {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if l := c.login[repository]; time.Now().Before(l.until) {
		return l.header
	}
	return ""
}

// logIn gets what a registry asks for.
func (c *Client) logIn(ctx context.Context, repository string, challenges []string) error {
	no := &StatusError{c.config.Registry, http.StatusUnauthorized, "it takes neither a token nor a password"}
	for _, text := range challenges {
		found, err := parseChallenge(text)
		if err != nil {
			return fmt.Errorf("%s: %w", c.config.Registry, err)
		}
		var got login
		switch {
		case found.scheme == "bearer":
			if got, err = c.token(ctx, repository, found.parameters); err != nil {
				return err
			}
		case found.scheme == "basic" && c.config.User != "":
			got = login{c.basic(), time.Now().Add(maxTokenLife)}
		case found.scheme == "basic":
			no.Message = "it wants a password: name a dockerConfig that has one in registries.yaml"
			continue
		default:
			continue
		}
		c.mutex.Lock()
		defer c.mutex.Unlock()
		if len(c.login) >= maxLogins {
			clear(c.login)
		}
		c.login[repository] = got
		return nil
	}
	return no
}

func (c *Client) basic() string {
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(c.config.User+":"+c.config.Password))
}

// token gets a token for pulling from one repository, whatever scope the registry names.
func (c *Client) token(ctx context.Context, repository string, parameters map[string]string) (login, error) {
	realm, err := url.Parse(parameters["realm"])
	if err != nil || realm.Scheme != "https" || realm.Host == "" || realm.User != nil {
		return login{}, fmt.Errorf("%s: its realm of tokens is not an https URL", c.config.Registry)
	}
	query := realm.Query()
	query.Set("scope", "repository:"+repository+":pull")
	if service := parameters["service"]; service != "" {
		query.Set("service", service)
	}
	realm.RawQuery, realm.Fragment = query.Encode(), ""
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, realm.String(), http.NoBody)
	if err != nil {
		return login{}, fmt.Errorf("asking for a token of %s: %w", c.config.Registry, err)
	}
	request.Header.Set("User-Agent", "muster")
	if c.config.User != "" {
		request.Header.Set("Authorization", c.basic())
	}
	response, err := c.http.Do(request)
	if err != nil {
		return login{}, fmt.Errorf("asking for a token of %s: %w", c.config.Registry, inner(err))
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return login{}, c.statusOf(response)
	}
	raw, err := io.ReadAll(io.LimitReader(response.Body, maxToken))
	if err != nil {
		return login{}, fmt.Errorf("reading a token of %s: %w", c.config.Registry, err)
	}
	return readToken(c.config.Registry, raw, time.Now())
}

func readToken(registry string, raw []byte, now time.Time) (login, error) {
	var answer struct {
		Token       string `json:"token"`
		AccessToken string `json:"access_token"`
		ExpiresIn   int64  `json:"expires_in"`
	}
	if err := json.Unmarshal(raw, &answer); err != nil {
		return login{}, fmt.Errorf("reading a token of %s: the answer is not JSON", registry)
	}
	token := answer.Token
	if token == "" {
		token = answer.AccessToken
	}
	for _, c := range []byte(token) {
		if c <= ' ' || c >= 0x7f {
			token = ""
			break
		}
	}
	if token == "" {
		return login{}, fmt.Errorf("reading a token of %s: the answer has none that can be sent", registry)
	}
	life := defaultTokenLife
	if answer.ExpiresIn > 0 {
		life = time.Duration(min(answer.ExpiresIn, int64(maxTokenLife/time.Second))) * time.Second
	}
	return login{"Bearer " + token, now.Add(max(life-tokenMargin, time.Second))}, nil
}
