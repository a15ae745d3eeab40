// SPDX-License-Identifier: Apache-2.0

package identityservice

import (
	"time"

	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/aws/iamfault"
	"muster.dev/muster/internal/iam/iam"
)

type keyInfo struct {
	UserName, AccessKeyId string
	Status                iam.KeyStatus
	CreateDate            time.Time
}

type newKeyInfo struct {
	keyInfo
	SecretAccessKey string
}

type newKeyOut struct{ AccessKey newKeyInfo }

type listKeysIn struct {
	UserName *string
	Marker   *string
	MaxItems *int32
}

type listKeysOut struct {
	listPage
	UserName          string
	AccessKeyMetadata []keyInfo
}

type updateKeyIn struct {
	UserName    *string
	AccessKeyId string
	Status      iam.KeyStatus
}

type keyIn struct {
	UserName    *string
	AccessKeyId string
}

type lastUsedIn struct {
	AccessKeyId string
}

type lastUsed struct {
	LastUsedDate        *time.Time
	ServiceName, Region string
}

type lastUsedOut struct {
	UserName          string
	AccessKeyLastUsed lastUsed
}

func (s *Service) registerKeys(front *awsfront.Front) {
	register(s, front, apiIAM, "CreateAccessKey", writes, func(c *call, in userNameIn) (target, error) { return c.aboutNamed(in.UserName) }, s.createKey)
	register(s, front, apiIAM, "ListAccessKeys", reads, func(c *call, in listKeysIn) (target, error) { return c.aboutNamed(in.UserName) }, s.listKeys)
	register(s, front, apiIAM, "UpdateAccessKey", writes, func(c *call, in updateKeyIn) (target, error) { return c.aboutNamed(in.UserName) }, s.updateKey)
	register(s, front, apiIAM, "DeleteAccessKey", writes, func(c *call, in keyIn) (target, error) { return c.aboutNamed(in.UserName) }, s.deleteKey)
	register(s, front, apiIAM, "GetAccessKeyLastUsed", reads, func(c *call, in lastUsedIn) (target, error) {
		if key, ok := c.state.Key(in.AccessKeyId); ok && key.Account == c.account {
			return c.aboutUser(key.UserName), nil
		}
		return anything(), nil
	}, s.keyLastUsed)
}

func (s *Service) createKey(c *call, in userNameIn) (*newKeyOut, error) {
	name, err := c.userName(in.UserName)
	if err != nil {
		return nil, err
	}
	u, err := c.user(name)
	if err != nil {
		return nil, err
	}
	if err := iam.CheckNewKey(u, len(c.state.KeysOf(u.ID))); err != nil {
		return nil, err
	}
	key, err := iam.NewAccessKey(u, c.now, s.config.Random)
	if err != nil {
		return nil, err
	}
	return &newKeyOut{newKeyInfo{infoOfKey(key), key.Secret.Reveal()}}, s.config.Store.Create(c.ctx, key)
}

func infoOfKey(k iam.AccessKey) keyInfo {
	return keyInfo{UserName: k.UserName, AccessKeyId: k.ID, Status: k.Status, CreateDate: k.Created}
}

func (s *Service) listKeys(c *call, in listKeysIn) (*listKeysOut, error) {
	name, err := c.userName(in.UserName)
	if err != nil {
		return nil, err
	}
	u, err := c.user(name)
	if err != nil {
		return nil, err
	}
	keys, page, err := pageBy(c.state.KeysOf(u.ID), func(k iam.AccessKey) string { return k.ID }, c.markers, in.Marker, in.MaxItems)
	out := &listKeysOut{listPage: page, UserName: u.Name}
	for _, k := range keys {
		out.AccessKeyMetadata = append(out.AccessKeyMetadata, infoOfKey(k))
	}
	return out, err
}

// key finds an access key of a user. Without a name the caller's own is meant.
func (c *call) key(userName *string, id string) (iam.AccessKey, error) {
	name, err := c.userName(userName)
	if err != nil {
		return iam.AccessKey{}, err
	}
	u, err := c.user(name)
	if err != nil {
		return iam.AccessKey{}, err
	}
	key, ok := c.state.Key(id)
	if !ok || key.UserID != u.ID {
		return iam.AccessKey{}, iamfault.Errorf(iamfault.NoSuchEntity, "The Access Key with id %.128s cannot be found.", id)
	}
	return key, nil
}

func (s *Service) updateKey(c *call, in updateKeyIn) (*none, error) {
	key, err := c.key(in.UserName, in.AccessKeyId)
	if err != nil {
		return nil, err
	}
	if key.Status, err = in.Status.Parse(); err != nil {
		return nil, err
	}
	return nil, s.config.Store.Update(c.ctx, c.state, key)
}

func (s *Service) deleteKey(c *call, in keyIn) (*none, error) {
	key, err := c.key(in.UserName, in.AccessKeyId)
	if err != nil {
		return nil, err
	}
	return nil, s.config.Store.Delete(c.ctx, c.state, key)
}

func (s *Service) keyLastUsed(c *call, in lastUsedIn) (*lastUsedOut, error) {
	key, ok := c.state.Key(in.AccessKeyId)
	if !ok || key.Account != c.account {
		return nil, iamfault.Errorf(iamfault.AccessDenied, "there is no access key %.128s in this account", in.AccessKeyId)
	}
	out := &lastUsedOut{UserName: key.UserName, AccessKeyLastUsed: lastUsed{ServiceName: "N/A", Region: "N/A"}}
	if last, ok := s.used.last(key.ID); ok {
		at := moment(last.at)
		out.AccessKeyLastUsed = lastUsed{LastUsedDate: &at, ServiceName: last.service, Region: last.region}
	}
	return out, nil
}
