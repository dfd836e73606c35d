// Raises an event once, however often it has to be tried: the ClientId tells the server which one it is.
//
//	SVC_URL=http://localhost:8080 SVC_KEY=... go run raise.go Shop.OrderPlaced order-17 '{"Total":12.50}'
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"time"
)

type raised struct {
	Id       string
	Webhooks int
}

// post says whether it is worth another try.
func post(body []byte, answer *[]raised) (again bool, err error) {
	request, err := http.NewRequest("POST", os.Getenv("SVC_URL")+"/Svc.Event", bytes.NewReader(body))
	if err != nil {
		return false, err
	}
	request.Header.Set("Content-Type", "application/json")
	if key := os.Getenv("SVC_KEY"); key != "" {
		request.Header.Set("Authorization", "apikey "+key)
	}
	client := http.Client{Timeout: 30 * time.Second}
	response, err := client.Do(request)
	if err != nil { // nobody knows whether it arrived: the next try finds out
		return true, err
	}
	defer response.Body.Close()
	if response.StatusCode == http.StatusCreated {
		return false, json.NewDecoder(response.Body).Decode(answer)
	}
	text, _ := io.ReadAll(response.Body)
	again = response.StatusCode >= 500 || response.StatusCode == 408 || response.StatusCode == 429
	return again, fmt.Errorf("%s", text)
}

func main() {
	body, err := json.Marshal(map[string]any{"Resource": os.Args[1], "ClientId": os.Args[2], "Payload": json.RawMessage(os.Args[3])})
	if err != nil {
		log.Fatal(err)
	}
	var answer []raised
	again, err := post(body, &answer)
	for wait := time.Second; again && wait <= 8*time.Second; wait *= 2 {
		time.Sleep(wait)
		again, err = post(body, &answer)
	}
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(answer[0].Id, answer[0].Webhooks)
}
