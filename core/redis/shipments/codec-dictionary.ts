/**
 * Texts that shipments often contain, for the packed form. Deflate refers back into it, and the nearer to its end the
 * cheaper. Never change it: what is stored could not be read any more.
 */
export const DICTIONARY = Buffer.from(
  [
    '"recipientActionUrl":"https://"attributes":{"trackingNumberChange":{"newTrackingNumber":"',
    '"pickupPoint":{"id":"","name":"","address":"","postalCode":"","countryCode":"","availableUntil":"',
    '"parcel":{"trackingNumber":"","index":1,"total":"externalId":"","senderAccount":"',
    '"reason":{"code":"","description":"Indirizzo errato o incompletoRifiutata dal destinatario',
    '"isReturn":true"isReturn":false"podUrl":"https://"attemptNumber":"estimatedDeliveryWindow":{"from":"","to":"',
    '"PICKUP_POINT""MAILBOX""NEIGHBOUR""SAFE_PLACE""OTHER"',
    "In transito verso filiale di destinazione Spedizione ritirata Presa in carico Dati di spedizione ricevuti",
    "Arrivata nella filiale Partita dalla filiale In giacenza Destinatario assente Tentativo di consegna fallito",
    "Consegna prevista Disponibile al punto di ritiro Reso al mittente In consegna Consegnata In transito",
    "Filiale Hub Centro Milano Roma Bologna Torino Napoli Firenze Verona Padova Bari Palermo Catania Genova",
    '"originCountry":"transparencyCodes":["notes":"custom1":"","custom2":"","custom3":"","custom4":"","custom5":"',
    '"unitOfMeasurement":"netWeight":"weight":"url":"https://"imageUrl":"https://"customsCode":"isReturnable":',
    '"latestShipDate":"2026-"latestDeliveryDate":"2026-"commercialContactEmail":"customAttributes":{"custom1":"',
    '"content":"","boxCode":"","length":30,"width":20,"height":10,"weight":"tag":"","note":"","platformOrderId":"',
    '"orderDate":"2026-"origin":"shopify"magento"api","isRealTrackingNumber":true,"isReturnable":true,',
    '"monetary":{"codAmount":"shippingCost":"totalValue":,"currency":"EUR"},',
    '"email":"@gmail.com@libero.it@example.com","phone":"+39 3","country":"IT","state":"RM","postcode":"00',
    '"consignee":{"country":"IT","name":"","street":"Via Viale Piazza Corso Giuseppe Garibaldi ","city":"Milano","',
    '"parcels":[{"length":,"width":,"height":,"weight":,"boxCode":"',
    '"orderItems":[{"sku":"SKU-","name":"","quantity":1,"price":,"total":},{"sku":"","name":"","quantity":2,"price":',
    '"language":"it","planning":{"deliveryDate":null,"latestShipDate":null,"latestDeliveryDate":null},"createdAtMs":179',
    '"}],["orderReference"]]',
    '{"delivery":{"estimatedDeliveryDate":"2026-1","deliveredTo":"RECIPIENT","signedBy":"',
    '"WAITING_TO_COMPUTE:0","PENDING:0","FAILED_ATTEMPT:2","DELAY:7","PICKUP_POINT:0","PROCESSING:0","RETURNED:0",',
    '["DELIVERED:0","DEPARTED:0","EXCEPTION:4","INFO_RECEIVED:0","IN_TRANSIT:0","OUT_FOR_DELIVERY:0"],[[',
    '[[1,1,"GLS_ITA","1Z","2026-11-',
    '",0,"IT-2026-1","00118","20121",[0,[],0,0],[[7,1795',
    "],[],0,0,0,0,0,[]],[0,0,0,0,0,0,[]],[]]]]",
    '"2026-11-10T08:00:00+01:00",1795,[3,0],"TRN","In transito","Hub Milano","IT","20121"],[',
    '+01:00",179,[12,0,1],"DLV","Consegnata","',
  ].join(""),
);
