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
	// defaultTokenLife is that of a token whose answer does not say ("Token Authentication"), maxTokenLife the longest
	// that is believed.
	defaultTokenLife = time.Minute
	maxTokenLife     = time.Hour
	// tokenMargin is how long before its end a token is not used any more.
	tokenMargin = 10 * time.Second
	// maxLogins bounds the repositories whose tokens are remembered.
	maxLogins = 1024
)

// login is what goes into the Authorization header of requests to a place.
type login struct {
	header string
	until  time.Time
}

func (c *Client) loggedIn(at place) string {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if l := c.login[at]; time.Now().Before(l.until) {
		return l.header
	}
	return ""
}

// logIn gets what a registry asks for.
func (c *Client) logIn(ctx context.Context, at place, challenges []string) error {
	no := &StatusError{at.registry, http.StatusUnauthorized, "it takes neither a token nor a password"}
	user, password, err := c.config.Credentials(at.registry)
	if err != nil {
		return fmt.Errorf("%s: %w", at.registry, err)
	}
	basic := ""
	if user != "" {
		basic = "Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+password))
	}
	for _, text := range challenges {
		found, err := parseChallenge(text)
		if err != nil {
			return fmt.Errorf("%s: %w", at.registry, err)
		}
		var got login
		switch {
		case found.scheme == "bearer":
			if got, err = c.token(ctx, at, found.parameters, basic); err != nil {
				return err
			}
		case found.scheme == "basic" && basic != "":
			got = login{basic, time.Now().Add(maxTokenLife)}
		case found.scheme == "basic":
			no.Message = "it wants a password: name it in registries.yaml, with a dockerConfig that has one"
			continue
		default:
			continue
		}
		c.mutex.Lock()
		defer c.mutex.Unlock()
		if len(c.login) >= maxLogins {
			clear(c.login)
		}
		c.login[at] = got
		return nil
	}
	return no
}

// token gets a token for pulling from one repository, whatever scope the registry names.
func (c *Client) token(ctx context.Context, at place, parameters map[string]string, basic string) (login, error) {
	realm, err := url.Parse(parameters["realm"])
	if err != nil || realm.Scheme != "https" || realm.Host == "" || realm.User != nil {
		return login{}, fmt.Errorf("%s: its realm of tokens is not an https URL", at.registry)
	}
	query := realm.Query()
	query.Set("scope", "repository:"+at.repository+":pull")
	if service := parameters["service"]; service != "" {
		query.Set("service", service)
	}
	realm.RawQuery, realm.Fragment = query.Encode(), ""
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, realm.String(), http.NoBody)
	if err != nil {
		return login{}, fmt.Errorf("asking for a token of %s: %w", at.registry, err)
	}
	request.Header.Set("User-Agent", "muster")
	if basic != "" {
		request.Header.Set("Authorization", basic)
	}
	response, err := c.http.Do(request)
	if err != nil {
		return login{}, fmt.Errorf("asking for a token of %s: %w", at.registry, inner(err))
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return login{}, statusOf(at.registry, response)
	}
	raw, err := io.ReadAll(io.LimitReader(response.Body, maxToken))
	if err != nil {
		return login{}, fmt.Errorf("reading a token of %s: %w", at.registry, err)
	}
	return readToken(at.registry, raw, time.Now())
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
