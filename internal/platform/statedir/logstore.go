// SPDX-License-Identifier: Apache-2.0

package statedir

// LogStore is the directory of the account, for the log store (package logstore).
type LogStore Dir

func (l LogStore) join(name string) string { return Dir(l).join("log-store", name) }

// Data holds the logs. It is there from the moment on that a log was to be kept.
func (l LogStore) Data() string { return l.join("data") }

// Shipped says how far each log was read.
func (l LogStore) Shipped() string { return l.join("shipped.json") }

// Socket is where the log store answers.
func (l LogStore) Socket() string { return Dir(l).join("run", "log-store.sock") }
