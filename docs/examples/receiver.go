// Receives webhooks of svcd: verifies each signature, refuses old ones, handles each event once.
//
//	WEBHOOK_SECRET=whsec_... PORT=9000 go run receiver.go
package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	tolerance     = 5 * time.Minute // how far the clocks may be apart
	bodyBytesMost = 1 << 20
	knownMost     = 10000
)

type receiver struct {
	secret []byte
	mutex  sync.Mutex
	known  map[string]bool // ids of events that were handled; a real receiver stores them
	order  []string        // the same, oldest first
}

// isGenuine verifies as Standard Webhooks says: v1 is HMAC-SHA256 over id, timestamp and body. One good
// signature will do.
func (r *receiver) isGenuine(header http.Header, body []byte) bool {
	timestamp := header.Get("webhook-timestamp")
	seconds, err := strconv.ParseInt(timestamp, 10, 64)
	if err != nil {
		return false
	}
	if age := time.Since(time.Unix(seconds, 0)); age > tolerance || age < -tolerance {
		return false
	}
	mac := hmac.New(sha256.New, r.secret)
	fmt.Fprintf(mac, "%s.%s.", header.Get("webhook-id"), timestamp)
	mac.Write(body)
	expected := []byte("v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	for _, given := range strings.Fields(header.Get("webhook-signature")) {
		if hmac.Equal(expected, []byte(given)) {
			return true
		}
	}
	return false
}

func handle(event string, entities []map[string]any) {
	text, _ := json.Marshal(entities)
	fmt.Printf("%s: %s\n", event, text)
}

func (r *receiver) handleOnce(id, event string, body []byte) error {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if r.known[id] {
		return nil
	}
	var entities []map[string]any
	if err := json.Unmarshal(body, &entities); err != nil {
		return err
	}
	handle(event, entities)
	r.known[id] = true
	r.order = append(r.order, id)
	if len(r.order) > knownMost {
		delete(r.known, r.order[0])
		r.order = r.order[1:]
	}
	return nil
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, request.Body, bodyBytesMost))
	if err != nil {
		w.WriteHeader(http.StatusRequestEntityTooLarge)
		return
	}
	if request.Method != http.MethodPost || !r.isGenuine(request.Header, body) {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	if err := r.handleOnce(request.Header.Get("webhook-id"), request.Header.Get("Svc-event"), body); err != nil {
		w.WriteHeader(http.StatusInternalServerError)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

func main() {
	secret, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(os.Getenv("WEBHOOK_SECRET"), "whsec_"))
	if err != nil || len(secret) == 0 {
		log.Fatal("WEBHOOK_SECRET is no secret")
	}
	port := os.Getenv("PORT")
	if port == "" {
		port = "9000"
	}
	listener, err := net.Listen("tcp", "127.0.0.1:"+port)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("listening on port %d\n", listener.Addr().(*net.TCPAddr).Port)
	log.Fatal(http.Serve(listener, &receiver{secret: secret, known: map[string]bool{}}))
}
