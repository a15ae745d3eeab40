// SPDX-License-Identifier: Apache-2.0

package imds

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"sync"
	"time"
)

// Credentials knows the roles of machines.
type Credentials interface {
	// Role returns the credentials of the role that a machine has; ErrNotFound, with the reason, if it has none.
	Role(ctx context.Context, instanceID string) (Role, error)
}

// Role is a machine's role, and credentials of it that end.
type Role struct {
	Name                    string
	ProfileARN, ProfileID   string
	AccessKeyID             string
	SecretAccessKey, Token  string
	LastUpdated, Expiration time.Time
}

// LogValue keeps the secrets out of logs.
func (r Role) LogValue() slog.Value { return slog.StringValue(r.String()) }

// String keeps the secrets out of what is printed.
func (r Role) String() string { return "credentials " + r.AccessKeyID + " of role " + r.Name }

// GoString keeps the secrets out of what is printed.
func (r Role) GoString() string { return r.String() }

const (
	iamPath         = "latest/meta-data/iam"
	infoPath        = iamPath + "/info"
	credentialsPath = iamPath + "/security-credentials/"
)

// leaves are the documents that EC2 has of a role, by path (EC2's user guide, "Retrieve security credentials from
// instance metadata").
func (r Role) leaves() (map[string]string, error) {
	info, err := json.MarshalIndent(struct {
		Code               string
		LastUpdated        string
		InstanceProfileArn string
		InstanceProfileID  string `json:"InstanceProfileId"`
	}{"Success", moment(r.LastUpdated), r.ProfileARN, r.ProfileID}, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("writing the role: %w", err)
	}
	credentials, err := json.MarshalIndent(struct {
		Code            string
		LastUpdated     string
		Type            string
		AccessKeyID     string `json:"AccessKeyId"`
		SecretAccessKey string
		Token           string
		Expiration      string
	}{"Success", moment(r.LastUpdated), "AWS-HMAC", r.AccessKeyID, r.SecretAccessKey, r.Token, moment(r.Expiration)}, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("writing the role: %w", err)
	}
	return map[string]string{infoPath: string(info), credentialsPath + r.Name: string(credentials)}, nil
}

func moment(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// renewalShare of their life is left when credentials are renewed. EC2 has new ones five minutes before the old ones
// end; a third of six hours lets the identity service be away for longer than that.
const renewalShare = 3

// RoleCache asks for each machine's credentials once, and again before they end. While the identity service does not
// answer, the known credentials go on being served for as long as they are good.
type RoleCache struct {
	from Credentials
	now  func() time.Time

	mutex sync.Mutex
	known map[string]*known
	// changes is how often something may have changed: answers from before the last one are asked for anew.
	changes int
}

// known is what is known of one machine. The holder of its lock asks; others wait for that answer.
type known struct {
	mutex   sync.Mutex
	role    Role
	changes int // when it was told
}

var _ Credentials = (*RoleCache)(nil)

// NewRoleCache keeps what another tells; now is the clock if nil.
func NewRoleCache(from Credentials, now func() time.Time) *RoleCache {
	if now == nil {
		now = time.Now
	}
	return &RoleCache{from: from, now: now, known: map[string]*known{}}
}

// Role implements [Credentials].
func (c *RoleCache) Role(ctx context.Context, instanceID string) (Role, error) {
	k, changes := c.of(instanceID)
	k.mutex.Lock()
	defer k.mutex.Unlock()
	now := c.now()
	left, life := k.role.Expiration.Sub(now), k.role.Expiration.Sub(k.role.LastUpdated)
	if left > life/renewalShare && left > 0 && k.changes == changes {
		return k.role, nil
	}
	fresh, err := c.from.Role(ctx, instanceID)
	switch {
	case err == nil:
		k.role, k.changes = fresh, changes
		return fresh, nil
	case left > 0 && !isNotFound(err):
		return k.role, nil
	}
	k.role = Role{}
	c.drop(instanceID, k)
	return Role{}, err
}

func (c *RoleCache) of(instanceID string) (k *known, changes int) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	k, ok := c.known[instanceID]
	if !ok {
		if len(c.known) >= remembered {
			c.sweep()
		}
		k = &known{}
		c.known[instanceID] = k
	}
	return k, c.changes
}

// sweep forgets machines whose credentials nobody asked for until they ended, and those that somebody is just asking
// for stay.
func (c *RoleCache) sweep() {
	now := c.now()
	for id, k := range c.known {
		if k.mutex.TryLock() {
			if !now.Before(k.role.Expiration) {
				delete(c.known, id)
			}
			k.mutex.Unlock()
		}
	}
}

func (c *RoleCache) drop(instanceID string, k *known) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.known[instanceID] == k {
		delete(c.known, instanceID)
	}
}

// Changed has everything asked for anew: a role was deleted or made again, or may have been. The known ones go on being
// served while there is no answer: services that are shown the credentials check whether they are still good.
func (c *RoleCache) Changed() {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.changes++
}
